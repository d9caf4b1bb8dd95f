"""Text that the displays and the report share."""

import difflib
from collections.abc import Mapping

from deploy.run.events import HostResult
from deploy.show.summary import Outcome, Summary

VERDICTS: Mapping[Outcome, str] = {
    Outcome.CONVERGED: "converged",
    Outcome.FAILED: "failed: see the tasks above; what succeeded stays, and running again is safe",
    Outcome.UNREACHABLE: "some hosts could not be reached; all others converged",
    Outcome.INTERRUPTED: "interrupted: hosts marked unknown may have changed since their last word",
}


def printable(text: str) -> str:
    """The text without control characters: what hosts say must not drive the admin's terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def task_name(result: HostResult) -> str:
    """``role : task``."""
    return f"{result.role} : {result.task}" if result.role else result.task


def failure_lines(result: HostResult) -> list[str]:
    """What, where and why of a failed or unreachable host."""
    first, *rest = printable(result.message).splitlines() or [""]
    lines = [f"{result.status.value.upper()} {result.host}: {task_name(result)}", f"    {first}"]
    lines += [f"    {line}" for line in rest]
    if result.path:
        lines.append(f"    at {result.path}")
    return lines


def diff_lines(result: HostResult) -> list[str]:
    """The differences a task made, as unified diffs."""
    lines: list[str] = []
    for diff in result.diff:
        if "prepared" in diff:
            lines += printable(diff["prepared"]).splitlines()
            continue
        lines += difflib.unified_diff(
            printable(diff.get("before", "")).splitlines(),
            printable(diff.get("after", "")).splitlines(),
            fromfile=diff.get("before_header", "before"),
            tofile=diff.get("after_header", "after"),
            lineterm="",
        )
    return lines


def host_lines(summary: Summary) -> list[str]:
    """One line of figures per host."""
    width = max((len(name) for name in summary.hosts), default=0)
    return [
        f"{name:<{width}}  ok={host.ok} changed={host.changed} failed={host.failed} "
        f"unreachable={host.unreachable} skipped={host.skipped} seconds={host.seconds:.1f}"
        + (" unknown" if host.unknown else "")
        for name, host in summary.hosts.items()
    ]
