"""Words and lines that the displays and the report share."""

import difflib
from collections.abc import Mapping

from deploy.judge.findings import findings_of
from deploy.judge.summary import HostSummary, Outcome, Summary
from deploy.run.events import HostResult
from deploy.site.node_lists import fold

EXPLANATIONS: Mapping[Outcome, str] = {
    Outcome.CONVERGED: "no task failed",
    Outcome.FAILED: "what succeeded stays, and running again is safe",
    Outcome.UNREACHABLE: "some hosts could not be reached; on all others no task failed",
    Outcome.INTERRUPTED: "hosts marked unknown may have changed since their last word",
}
_MINUTE = 60
_HOUR = 3600


def result_line(result: HostResult) -> str:
    """Verdict, host and task on one line."""
    return f"{result.verdict:<8} {result.host}: {result.title}"


def failure_lines(result: HostResult) -> list[str]:
    """What, where and why of a task that failed or a host that was not reached."""
    if found := finding_lines(result):
        return found
    lines = [f"{result.verdict.upper()} {result.host}: {result.title}"]
    lines += [f"    {line}" for line in result.message.splitlines()]
    return [*lines, f"    at {result.path}"] if result.path else lines


def finding_lines(result: HostResult) -> list[str]:
    """What a result says is wrong with its host, be it fit all the same."""
    return [line for finding in findings_of(result) for line in str(finding).splitlines()]


def message_lines(result: HostResult) -> list[str]:
    """What a task that went well says."""
    return [f"    {line}" for line in result.message.splitlines()]


def diff_lines(result: HostResult) -> list[str]:
    """The differences a task made, as unified diffs."""
    lines: list[str] = []
    for diff in result.diff:
        lines += difflib.unified_diff(
            diff.before.splitlines(),
            diff.after.splitlines(),
            fromfile=diff.before_header or "before",
            tofile=diff.after_header or "after",
            lineterm="",
        )
    return lines


def host_lines(summary: Summary) -> list[str]:
    """One line of figures per host."""
    width = max((len(name) for name in summary.hosts), default=0)
    return [f"{name:<{width}}  {_figures(host)}" for name, host in summary.hosts.items()]


def unfinished_lines(summary: Summary) -> list[str]:
    """What was to be done and was not, by hosts and cause; what waits for a later run; what is left over."""
    titles: dict[tuple[str, str], list[str]] = {}
    for part in summary.not_run:
        titles.setdefault((fold(part.hosts), part.why), []).append(part.title)
    lines = [f"not run  {hosts}: {', '.join(names)}: {why}" for (hosts, why), names in titles.items()]
    for name, host in summary.hosts.items():
        lines += [f"pending  {name}: {text}" for text in host.pending]
    return lines + [line for left in summary.left_over for line in str(left).splitlines()]


def _figures(host: HostSummary) -> str:
    words = [
        f"ok={host.ok} changed={host.changed} failed={host.failed}",
        f"unreachable={host.unreachable} skipped={host.skipped} seconds={host.seconds:.1f}",
    ]
    words += [f"verified={host.verified}"] * bool(host.verified)
    words += [f"not_run={host.not_run}"] * bool(host.not_run)
    words += [f"rescued={host.rescued}"] * bool(host.rescued)
    words += [f"ignored={host.ignored}"] * bool(host.ignored)
    return " ".join(words + ["unknown"] * host.unknown)


def verdict_line(summary: Summary) -> str:
    """The outcome in one line."""
    changes = f"{summary.changed} change{'s' * (summary.changed != 1)}"
    explanation = EXPLANATIONS[summary.outcome]
    return f"{summary.outcome.value}: {explanation} ({changes}, {duration(summary.seconds)})"


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE:02d} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02d} min"
