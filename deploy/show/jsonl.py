"""A run as JSON lines, for programs: every event, then the summary."""

import json
from collections.abc import Callable, Sequence

from deploy.judge.preview import Preview
from deploy.judge.summary import Summary
from deploy.run.events import Event, PlayStarted, TaskStarted, to_json
from deploy.show.preview import as_json
from deploy.show.summary import summary_json


class JsonlDisplay:
    """One object per line: ``run_started``, the events as the journal has them, ``summary``."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def start(self, title: str, hosts: Sequence[str]) -> None:
        """The run's title and hosts."""
        self._write(json.dumps({"event": "run_started", "title": title, "hosts": list(hosts)}))

    def event(self, event: Event) -> None:
        """The event as the journal has it."""
        self._write(to_json(event))

    def progress(self, event: PlayStarted | TaskStarted) -> None:
        """The plan comes whole."""

    def plan(self, preview: Preview) -> None:
        """The plan, before anything is done."""
        self._write(json.dumps({"event": "plan", **as_json(preview)}))

    def finish(self, summary: Summary, hint: str) -> None:
        """The figures, and what to type next."""
        self._write(json.dumps({"event": "summary", **summary_json(summary), "hint": hint}))

    def close(self) -> None:
        """Nothing to give back."""
