"""Ansible callback plugin: ansible-runner's own, with half of its events and what deploy asks beyond them.

It runs inside ansible-playbook and imports nothing of ``deploy``.
"""

import gc
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ansible.playbook.block import Block
from ansible.plugins.loader import callback_loader

DOCUMENTATION = """
    name: deploy_events
    type: stdout
    short_description: Events for deploy
    description:
        - What ansible-runner's awx_display does, without an event per started host and per loop item.
        - Each result says whether it changed something, was ignored or will be rescued,
          also where its content is censored.
        - A task has an id where its variable deploy_step says one; its name is for people.
        - The end of a play names the hosts on which its last task ended. Ansible does not report it; a host
          came to it that had results and was not lost. It is told when the next play begins, or the recap.
    extends_documentation_fragment:
        - default_callback
"""

_FAILED = "runner_on_failed"
_UNREACHABLE = "runner_on_unreachable"
_RESULTS = frozenset({"runner_on_ok", "runner_on_skipped", _FAILED, _UNREACHABLE})

# What a run allocates it mostly keeps: looking for garbage as often as Python does would find none.
_GARBAGE_THRESHOLD = 50_000
_RunnerCallback: Any = callback_loader.get("awx_display", class_only=True)


def _is_rescued(task: Any) -> bool:  # noqa: ANN401 - Ansible has no types
    """Whether some block around a failed task has a rescue section for it."""
    child, parent = task, task._parent  # noqa: SLF001 - Ansible offers no other way up
    while parent is not None:
        if isinstance(parent, Block) and parent.rescue and _holds(parent.block, child):
            return True
        child, parent = parent, parent._parent  # noqa: SLF001
    return False


def _holds(section: list[Any], child: Any) -> bool:  # noqa: ANN401
    return any(entry._uuid == child._uuid for entry in section)  # noqa: SLF001


class CallbackModule(_RunnerCallback):  # type: ignore[misc]
    """The events that ``deploy`` reads."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "deploy_events"

    def __init__(self) -> None:
        super().__init__()
        self._has_play = False
        # Of the play, by name.
        self._hosts: set[str] = set()
        self._lost: set[str] = set()
        # As wide as the terminal, which is made so wide that nothing is wrapped: a megabyte of stars a run.
        self._display.banner = lambda *_, **__: None

    def capture_event_data(self, event: str, **data: Any) -> AbstractContextManager[None]:  # noqa: ANN401
        """Leave out what nobody reads; add what would be lost."""
        if event == "runner_on_start":
            return nullcontext()
        if step := getattr(data.get("task"), "vars", {}).get("deploy_step"):
            data["deploy_step"] = str(step)
        if event in _RESULTS:
            self._note(event, data)
        context: AbstractContextManager[None] = super().capture_event_data(event, **data)
        return context

    def _note(self, event: str, data: dict[str, Any]) -> None:
        """Add to a result what only the task knows; remember who lost it."""
        task, host = data["task"], data["host"]
        if event != "runner_on_skipped":
            data["deploy_changed"] = bool(data["res"].get("changed"))
        is_lost = False
        if event == _FAILED:
            data["deploy_rescued"] = not data["ignore_errors"] and _is_rescued(task)
            is_lost = not (data["ignore_errors"] or data["deploy_rescued"])
        elif event == _UNREACHABLE:
            data["deploy_ignored"] = bool(task.ignore_unreachable)
            is_lost = not data["deploy_ignored"]
        self._hosts.add(host)
        if is_lost:
            self._lost |= self._hosts if task.any_errors_fatal or task.run_once else {host}

    def v2_playbook_on_play_start(self, play: Any) -> None:  # noqa: ANN401
        """Each task forks this process for each host; its garbage collector need not look at what is here."""
        gc.freeze()
        gc.set_threshold(_GARBAGE_THRESHOLD)
        self._end_play()
        self._has_play = True
        super().v2_playbook_on_play_start(play)

    def v2_playbook_on_no_hosts_matched(self) -> None:
        """There is nobody in the play."""
        self._has_play = False
        super().v2_playbook_on_no_hosts_matched()

    def v2_playbook_on_no_hosts_remaining(self) -> None:
        """Also those who did not fail are taken out of the play (``max_fail_percentage``)."""
        self._lost |= self._hosts
        super().v2_playbook_on_no_hosts_remaining()

    def v2_playbook_on_stats(self, stats: Any) -> None:  # noqa: ANN401
        """The last play is over; where Ansible itself broke there is no recap."""
        self._end_play()
        super().v2_playbook_on_stats(stats)

    def _end_play(self) -> None:
        """Tell on which hosts the last task of the play ended."""
        if self._has_play:
            with self.capture_event_data("deploy_play_ended", hosts=sorted(self._hosts - self._lost)):
                pass
        self._has_play = False
        self._hosts.clear()
        self._lost.clear()

    def v2_runner_item_on_ok(self, result: Any) -> None:  # noqa: ANN401
        """A loop is one result."""

    def v2_runner_item_on_failed(self, result: Any) -> None:  # noqa: ANN401
        """A loop is one result."""

    def v2_runner_item_on_skipped(self, result: Any) -> None:  # noqa: ANN401
        """A loop is one result."""

    def _dump_results(self, *_: Any, **__: Any) -> str:  # noqa: ANN401
        """The event holds the result; printed as well, megabytes of it would crawl through the terminal."""
        return ""

    def v2_on_file_diff(self, result: Any) -> None:  # noqa: ANN401
        """The result itself holds the difference."""
