"""A run as plain lines, for logs and pipes."""

from collections.abc import Callable, Iterable, Sequence

from deploy.judge.preview import Preview
from deploy.judge.summary import Summary
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
    host_lines,
    message_lines,
    result_line,
    unfinished_lines,
    verdict_line,
)


class PlainDisplay:
    """A line per phase, per change and per failure; ``verbose`` adds one for everything else."""

    def __init__(self, write: Callable[[str], None], *, verbose: bool = False, diff: bool = False) -> None:
        self._write = write
        self._verbose = verbose
        self._diff = diff

    def start(self, title: str, hosts: Sequence[str]) -> None:
        """Name the run."""
        self._write(f"{title}: {len(hosts)} host{'s' * (len(hosts) != 1)}")

    def event(self, event: Event) -> None:
        """Write what an admin would want in a log."""
        match event:
            case PlayStarted():
                self._write(f"== {event.play}")
            case HostResult():
                self._result(event)
            case HostVerified():
                self._lines(f"drift    {event.host}: {text}" for text in event.drift)
            case Retry() if self._verbose:
                task = f"{event.role} : {event.task}" if event.role else event.task
                self._write(f"waiting  {event.host}: {task} (attempt {event.attempts} of {event.retries})")
            case Notice(level=Level.WARNING) | Notice(level=Level.ERROR):
                self._lines(event.text.splitlines())
            case Notice(level=Level.OUTPUT) if self._verbose:
                self._lines(event.text.splitlines())

    def progress(self, event: PlayStarted | TaskStarted) -> None:
        """A log needs no progress."""

    def plan(self, preview: Preview) -> None:
        """What disturbs anything, what is lost, and the whole in a line."""
        self._lines(plan_lines(preview))

    def _result(self, result: HostResult) -> None:
        if result.is_trouble:
            self._lines(failure_lines(result))
        elif self._verbose or result.status is Status.CHANGED or result.verdict in {"ignored", "rescued"}:
            self._write(result_line(result))
            if self._verbose:
                self._lines(message_lines(result))
        if not result.is_trouble:
            self._lines(finding_lines(result))
        if self._diff:
            self._lines(f"    {line}" for line in diff_lines(result))

    def finish(self, summary: Summary, hint: str) -> None:
        """The figures per host, the outcome, what to type next."""
        told = [verdict_line(summary), f"next: {hint}"]
        for lines in (summary.trouble, host_lines(summary), unfinished_lines(summary), told):
            if lines:
                self._write("")
                self._lines(lines)

    def close(self) -> None:
        """Nothing to give back."""

    def _lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._write(line)
