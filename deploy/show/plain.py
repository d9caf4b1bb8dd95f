"""A run as plain lines, for logs and pipes."""

from collections.abc import Callable

from deploy.run.events import Event, HostResult, Notice, PlayStarted, Status
from deploy.show.summary import Summary
from deploy.show.text import VERDICTS, diff_lines, failure_lines, host_lines, printable, task_name


class PlainDisplay:
    """A line per phase, per change and per failure; with ``verbose`` per result."""

    def __init__(self, write: Callable[[str], None], *, verbose: bool = False, diff: bool = False) -> None:
        self._write = write
        self._verbose = verbose
        self._diff = diff

    def start(self, title: str, hosts: tuple[str, ...]) -> None:
        """Names the run."""
        self._write(f"{title}: {len(hosts)} hosts")

    def event(self, event: Event) -> None:
        """Writes what an admin would want in a log."""
        if isinstance(event, PlayStarted):
            self._write(f"== {printable(event.play)}")
        elif isinstance(event, Notice):
            self._write(printable(event.text))
        elif isinstance(event, HostResult):
            self._result(event)

    def _result(self, result: HostResult) -> None:
        if result.status in {Status.FAILED, Status.UNREACHABLE}:
            for line in failure_lines(result):
                self._write(line)
        elif self._verbose or result.status in {Status.CHANGED, Status.IGNORED}:
            self._write(f"{result.status.value:<8} {result.host}: {printable(task_name(result))}")
        if self._diff:
            for line in diff_lines(result):
                self._write(f"    {line}")

    def finish(self, summary: Summary, hint: str) -> None:
        """The figures per host, the verdict, what to type next."""
        self._write("")
        for line in host_lines(summary):
            self._write(line)
        self._write("")
        self._write(f"{VERDICTS[summary.outcome]}: {summary.changed} changes in {summary.seconds:.1f} s")
        self._write(hint)
