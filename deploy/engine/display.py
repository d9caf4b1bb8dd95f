"""What every way of showing a run can do."""

from collections.abc import Sequence
from typing import Protocol

from deploy.judge.preview import Preview
from deploy.judge.summary import Summary
from deploy.run.events import Event, PlayStarted, TaskStarted


class Display(Protocol):
    """Shows a run while it goes on."""

    def start(self, title: str, hosts: Sequence[str]) -> None:
        """The run is about to begin."""

    def event(self, event: Event) -> None:
        """Something happened."""

    def progress(self, event: PlayStarted | TaskStarted) -> None:
        """A step of what is previewed; nothing is done yet."""

    def plan(self, preview: Preview) -> None:
        """What is about to be done."""

    def finish(self, summary: Summary, hint: str) -> None:
        """The run is over; ``hint`` is the next thing to type."""

    def close(self) -> None:
        """Give the terminal back, also when the run broke before it could finish; may be called twice."""
