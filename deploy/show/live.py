"""A run as a live view on a terminal: phase, task, the state of every host, elapsed time."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from deploy.judge.preview import Preview
from deploy.judge.summary import HostSummary, Outcome, Summary
from deploy.run.events import (
    Event,
    HostResult,
    HostVerified,
    Level,
    Notice,
    PlayStarted,
    Retry,
    Status,
    TaskStarted,
)
from deploy.show.preview import plan_lines
from deploy.show.text import (
    diff_lines,
    failure_lines,
    finding_lines,
    message_lines,
    result_line,
    unfinished_lines,
    verdict_line,
)

_STYLES = {
    "ok": "green",
    "changed": "yellow",
    "failed": "bold red",
    "unreachable": "bold red",
    "skipped": "dim",
    "ignored": "magenta",
    "rescued": "magenta",
}
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
# Lines of the view that are not hosts, and what stays free for what scrolls by above it.
_OTHER_LINES = 10
_COLUMNS = ("ok", "changed", "skipped", "failed")


@dataclass
class _HostState:
    counts: Counter[str] = field(default_factory=Counter)
    last: HostResult | None = None

    @property
    def is_bad(self) -> bool:
        return bool(self.counts["failed"] or self.counts["unreachable"])


class LiveDisplay:
    """Failures and, if asked for, results and diffs scroll by above; the state stays below."""

    def __init__(self, console: Console, *, verbose: bool = False, diff: bool = False) -> None:
        self._console = console
        self._verbose = verbose
        self._diff = diff
        self._title = ""
        self._phase = "starting"
        self._task = ""
        self._done: set[str] = set()
        self._began = time.monotonic()
        self._hosts: dict[str, _HostState] = {}
        self._spinner = Spinner("line", style="cyan")
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=4, transient=True)

    def start(self, title: str, hosts: Sequence[str]) -> None:
        """Open the view."""
        self._title = title
        self._began = time.monotonic()
        self._hosts = {host: _HostState() for host in hosts}
        self._live.start()

    def event(self, event: Event) -> None:
        """Take note of an event; print what must not be missed."""
        match event:
            case PlayStarted():
                self._phase, self._task = event.play, ""
                if self._verbose:
                    self._print(f"== {event.play}", "bold cyan")
            case TaskStarted():
                self._task = f"{event.role} : {event.task}" if event.role else event.task
                self._done = set()
            case Retry():
                title = f"{event.role} : {event.task}" if event.role else event.task
                self._task = f"{title} (attempt {event.attempts} of {event.retries} on {event.host})"
            case HostResult():
                self._result(event)
            case HostVerified():
                self._print("\n".join(f"drift    {event.host}: {text}" for text in event.drift), "yellow")
            case Notice(level=Level.WARNING):
                self._print(event.text, "magenta")
            case Notice(level=Level.OUTPUT) if self._verbose:
                self._print(event.text, "dim")
            case Notice(level=Level.ERROR):
                self._print(event.text, "red")

    def progress(self, event: PlayStarted | TaskStarted) -> None:
        """The same view, named a plan."""
        self.event(replace(event, play=f"Plan: {event.play}"))

    def plan(self, preview: Preview) -> None:
        """What disturbs anything, what is lost, and the whole in a line."""
        style = "bold red" if preview.needs_consent else "bold"
        *lines, last = plan_lines(preview)
        self._print("\n".join(lines), "red" if preview.losses else "yellow")
        self._print(last, style)

    def _result(self, result: HostResult) -> None:
        state = self._hosts.setdefault(result.host, _HostState())
        state.counts[result.verdict] += 1
        state.last = result
        self._done.add(result.host)
        style = _STYLES[result.verdict]
        if result.is_trouble:
            first, *rest = failure_lines(result)
            self._print(first, style)
            self._print("\n".join(rest), "red")
        elif self._verbose or (self._diff and result.diff):
            self._print("\n".join([result_line(result), *message_lines(result)]), style)
        if not result.is_trouble:
            self._print("\n".join(finding_lines(result)), "yellow")
        if self._diff:
            for line in diff_lines(result):
                self._print(f"    {line}", _DIFF_STYLES.get(line[:1], "dim"))

    def _print(self, text: str, style: str) -> None:
        if text:
            # As Text: what hosts say is never read as markup, and is not coloured word by word.
            self._console.print(Text(text, style=style), soft_wrap=True)

    def _render(self) -> RenderableType:
        elapsed = int(time.monotonic() - self._began)
        head = Table.grid(padding=(0, 1), expand=True)
        head.add_column(width=1)
        head.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        head.add_column(justify="right", no_wrap=True)
        head.add_row(self._spinner, Text(self._title, style="bold"), f"{elapsed // 60}:{elapsed % 60:02d}")
        head.add_row("", Text(self._phase, style="bold cyan"), self._progress())
        head.add_row("", Text(self._task), "")
        return Group(Text(), head, Text(), self._states())

    def _progress(self) -> Text:
        done = len(self._done)
        return Text(f"{done} host{'s' * (done != 1)} done" if self._task else "", style="dim")

    def _states(self) -> RenderableType:
        rows = max(4, self._console.height - _OTHER_LINES)
        shown = list(self._hosts.items())
        if len(shown) > rows:
            # Too many for the screen: the bad ones first, then those that spoke last.
            shown.sort(key=lambda item: (not item[1].is_bad, -(item[1].last.at if item[1].last else 0.0)))
        hidden = shown[rows - 1 :] if len(shown) > rows else []
        table = _figures_table("last result", expand=True)
        for name, state in shown[: len(shown) - len(hidden)]:
            table.add_row(*_state_row(name, state))
        if hidden:
            total = sum((state.counts for _, state in hidden), Counter[str]())
            cells = _cells(total["ok"] + total["changed"], total["changed"], total["skipped"], 0)
            table.add_row(Text(f"{len(hidden)} more", style="dim"), *cells, Text())
        return table

    def finish(self, summary: Summary, hint: str) -> None:
        """Close the view and leave the figures."""
        self.close()
        self._print("\n".join(summary.trouble), "red")
        table = _figures_table("seconds")
        table.columns[-1].justify = "right"
        for name, host in summary.hosts.items():
            table.add_row(*_summary_row(name, host))
        if summary.hosts:
            self._console.print()
            self._console.print(table)
            self._console.print()
        self._print("\n".join(unfinished_lines(summary)), "yellow")
        is_good = summary.outcome is Outcome.CONVERGED
        self._print(verdict_line(summary), "bold green" if is_good else "bold red")
        self._console.print(Text.assemble(("next: ", "dim"), hint), soft_wrap=True)

    def close(self) -> None:
        """Give the terminal back."""
        self._live.stop()


def _figures_table(last: str, *, expand: bool = False) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", expand=expand)
    table.add_column("host", no_wrap=True)
    for name in _COLUMNS:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column(last, no_wrap=True, overflow="ellipsis", ratio=1 if expand else None)
    return table


def _state_row(name: str, state: _HostState) -> Iterable[Text]:
    counts, last = state.counts, state.last
    style = "bold red" if state.is_bad else "" if last else "dim"
    bad = counts["failed"] + counts["unreachable"]
    ok = counts["ok"] + counts["changed"] + counts["ignored"]
    word = Text()
    if last:
        is_quiet = last.status in {Status.OK, Status.SKIPPED}
        word = Text.assemble(
            (f"{last.verdict} ", _STYLES[last.verdict]), (last.title, "dim" if is_quiet else "")
        )
    return (Text(name, style=style), *_cells(ok, counts["changed"], counts["skipped"], bad), word)


def _summary_row(name: str, host: HostSummary) -> Iterable[Text]:
    style = "bold red" if host.is_bad else "magenta" if host.unknown else ""
    label = f"{name} (unknown)" if host.unknown else f"{name} (unreachable)" if host.unreachable else name
    bad = host.failed + host.unreachable
    figures = _cells(host.ok, host.changed, host.skipped, bad)
    return (Text(label, style=style), *figures, Text(f"{host.seconds:.1f}"))


def _cells(ok: int, changed: int, skipped: int, bad: int) -> tuple[Text, ...]:
    pairs = ((ok, "green"), (changed, "yellow"), (skipped, "dim"), (bad, "bold red"))
    return tuple(
        Text(str(count) if count else "-", style=style if count else "dim") for count, style in pairs
    )
