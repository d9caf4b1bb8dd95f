"""What happens in a run, in order: shown at once, and kept as soon as there is a place to keep it."""

from collections.abc import Callable

from deploy.judge.findings import is_refused
from deploy.judge.summary import summarize
from deploy.run.events import Event


class Story:
    """The events of a run; ``show`` gets each that is told."""

    def __init__(self, show: Callable[[Event], None] = lambda _: None) -> None:
        self.events: list[Event] = []
        self._show = show
        self._keep: list[Callable[[Event], None]] = []

    def tell(self, event: Event) -> None:
        """An event that is shown."""
        self.keep(event)
        self._show(event)

    def keep(self, *events: Event) -> None:
        """Events that are not shown."""
        for event in events:
            for keep in self._keep:
                keep(event)
            self.events.append(event)

    def kept_by(self, keep: Callable[[Event], None]) -> None:
        """Has all events kept, those of the past and those to come."""
        for event in self.events:
            keep(event)
        self._keep.append(keep)

    @property
    def is_refused(self) -> bool:
        """Whether a machine was found unfit, which stops a run before it changes anything."""
        return is_refused(self.events)

    @property
    def is_broken(self) -> bool:
        """Whether Ansible broke outside of any task: what it would have said next, nobody knows."""
        return bool(summarize(self.events, ()).trouble)

    @property
    def is_stopped(self) -> bool:
        """Whether nothing may be changed any more."""
        return self.is_refused or self.is_broken
