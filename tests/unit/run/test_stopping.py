"""What a run says while it is stopped."""

from pathlib import Path

import pytest

from deploy.run.cancellation import Cancellation
from deploy.run.events import Level, Notice
from deploy.run.execute import _Run

# ansible-core 2.19 to 2.21, interrupted between two tasks.
TRACEBACK = "[ERROR]: Unexpected Exception, this is probably a bug: process object is closed\n\nTraceback ..."


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_traceback_of_the_interruption_is_not_shown(tmp_path: Path, *, is_asked: bool) -> None:
    cancellation = Cancellation()
    if is_asked:
        cancellation.ask()
    run = _Run({}, tmp_path)
    run._queue.put({"event": "error", "stdout": TRACEBACK})
    run._queue.put({"uuid": run.next_mark(), "rc": 1})
    levels = [event.level for event in run.events(cancellation) if isinstance(event, Notice)]
    assert levels == [Level.WARNING if is_asked else Level.ERROR]
