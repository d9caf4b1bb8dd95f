"""Ctrl-C: the first one asks a run to stop, the second one ends it at once."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Cancellation:
    """A wish to stop, that can only grow stronger."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._at_once = threading.Event()

    def ask(self) -> None:
        """Ask to stop; asked again, insist."""
        if self._asked.is_set():
            self._at_once.set()
        self._asked.set()

    @property
    def is_asked(self) -> bool:
        """Whether the run shall stop."""
        return self._asked.is_set()

    @property
    def is_at_once(self) -> bool:
        """Whether the run shall be killed now."""
        return self._at_once.is_set()


@contextmanager
def signals_cancel(cancellation: Cancellation | None = None) -> Iterator[Cancellation]:
    """While this lasts, SIGINT, SIGTERM and SIGHUP ask for cancellation; main thread only."""
    cancellation = cancellation or Cancellation()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        cancellation.ask()

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, on_signal)
    try:
        yield cancellation
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
