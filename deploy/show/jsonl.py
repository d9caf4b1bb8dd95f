"""A run as JSON lines: every event, then the summary."""

import json
from collections.abc import Callable

from deploy.run.events import Event, to_json
from deploy.show.summary import Summary


class JsonlDisplay:
    """One object per line; the last one has ``event: Summary``."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def start(self, title: str, hosts: tuple[str, ...]) -> None:
        """The run's title and hosts."""
        self._write(json.dumps({"event": "Started", "title": title, "hosts": list(hosts)}))

    def event(self, event: Event) -> None:
        """The event as the journal has it."""
        self._write(json.dumps(to_json(event)))

    def finish(self, summary: Summary, hint: str) -> None:
        """The figures, and what to type next."""
        self._write(json.dumps({"event": "Summary", **summary.to_json(), "hint": hint}))
