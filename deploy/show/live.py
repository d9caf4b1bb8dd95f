"""A run as a live view on a terminal: phase, task, the state of every host, elapsed time."""

import time
from collections import Counter

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from deploy.run.events import Event, HostResult, Notice, PlayStarted, Status, TaskStarted
from deploy.show.summary import Outcome, Summary
from deploy.show.text import VERDICTS, diff_lines, failure_lines, printable, task_name

_STYLES = {
    Status.OK: "green",
    Status.CHANGED: "yellow",
    Status.FAILED: "bold red",
    Status.UNREACHABLE: "bold red",
    Status.SKIPPED: "dim",
    Status.IGNORED: "magenta",
}
_MOST_HOSTS = 24
"""More hosts than this are shown as counts: a screen has only so many lines."""


class LiveDisplay:
    """Failures and, if asked for, results and diffs scroll by above; the state stays below."""

    def __init__(self, console: Console, *, verbose: bool = False, diff: bool = False) -> None:
        self._console = console
        self._verbose = verbose
        self._diff = diff
        self._title = ""
        self._phase = ""
        self._task = ""
        self._began = time.monotonic()
        self._counts: dict[str, Counter[Status]] = {}
        self._last: dict[str, str] = {}
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=4, transient=True)

    def start(self, title: str, hosts: tuple[str, ...]) -> None:
        """Opens the view."""
        self._title = title
        self._began = time.monotonic()
        self._counts = {host: Counter() for host in hosts}
        self._live.start()

    def event(self, event: Event) -> None:
        """Takes note of an event; prints what must not be missed."""
        if isinstance(event, PlayStarted):
            self._phase = event.play
        elif isinstance(event, TaskStarted):
            self._task = f"{event.role} : {event.task}" if event.role else event.task
        elif isinstance(event, Notice):
            self._console.print(Text(printable(event.text), style="magenta"))
        elif isinstance(event, HostResult):
            self._result(event)

    def _result(self, result: HostResult) -> None:
        self._counts.setdefault(result.host, Counter())[result.status] += 1
        self._last[result.host] = task_name(result)
        style = _STYLES[result.status]
        if result.status in {Status.FAILED, Status.UNREACHABLE}:
            self._console.print(Text("\n".join(failure_lines(result)), style=style))
        elif self._verbose:
            line = f"{result.status.value:<8} {result.host}: {printable(task_name(result))}"
            self._console.print(Text(line, style=style))
        if self._diff and result.diff:
            self._console.print(Text("\n".join(diff_lines(result)), style="cyan"))

    def _render(self) -> RenderableType:
        elapsed = int(time.monotonic() - self._began)
        head = Text.assemble(
            (self._title, "bold"),
            f"  {elapsed // 60}:{elapsed % 60:02d}  ",
            (self._phase or "starting", "cyan"),
            ("  " + printable(self._task), ""),
        )
        head.truncate(max(20, self._console.width - 1), overflow="ellipsis")
        return Group(head, self._hosts())

    def _hosts(self) -> RenderableType:
        if len(self._counts) > _MOST_HOSTS:
            total: Counter[Status] = sum(self._counts.values(), Counter())
            return Text("  ".join(f"{status.value} {count}" for status, count in total.items()))
        table = Table(box=None, padding=(0, 1), show_header=False)
        for host, counts in self._counts.items():
            table.add_row(
                Text(host, style=_worst_style(counts)),
                Text(f"ok {counts[Status.OK] + counts[Status.CHANGED]}", style="green"),
                Text(f"changed {counts[Status.CHANGED]}", style="yellow"),
                Text(f"failed {counts[Status.FAILED] + counts[Status.UNREACHABLE]}", style="red"),
                Text(printable(self._last.get(host, "")), style="dim", no_wrap=True, overflow="ellipsis"),
            )
        return table

    def finish(self, summary: Summary, hint: str) -> None:
        """Closes the view and leaves a table of figures."""
        self._live.stop()
        table = Table("host", "ok", "changed", "failed", "unreachable", "skipped", "seconds", box=None)
        for name, host in summary.hosts.items():
            numbers = (host.ok, host.changed, host.failed, host.unreachable, host.skipped)
            style = "red" if host.failed or host.unreachable else "magenta" if host.unknown else ""
            label = f"{name} (unknown)" if host.unknown else name
            table.add_row(label, *map(str, numbers), f"{host.seconds:.1f}", style=style)
        self._console.print(table)
        style = "bold green" if summary.outcome is Outcome.CONVERGED else "bold red"
        figures = f": {summary.changed} changes in {summary.seconds:.1f} s"
        self._console.print(Text(VERDICTS[summary.outcome] + figures, style=style))
        self._console.print(Text(hint))


def _worst_style(counts: Counter[Status]) -> str:
    for status in (Status.UNREACHABLE, Status.FAILED, Status.CHANGED, Status.OK):
        if counts[status]:
            return _STYLES[status]
    return "dim"
