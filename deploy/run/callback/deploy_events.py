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
        - The end of a play names the hosts on which its last task ended.
    extends_documentation_fragment:
        - default_callback
"""

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
        # As wide as the terminal, which is made so wide that nothing is wrapped: a megabyte of stars a run.
        self._display.banner = lambda *_, **__: None

    def capture_event_data(self, event: str, **data: Any) -> AbstractContextManager[None]:  # noqa: ANN401
        """Leave out what nobody reads; add what would be lost."""
        if event == "runner_on_start":
            return nullcontext()
        if step := getattr(data.get("task"), "vars", {}).get("deploy_step"):
            data["deploy_step"] = str(step)
        if event in {"runner_on_ok", "runner_on_failed", "runner_on_unreachable"}:
            task, result = data["task"], data["res"]
            data["deploy_changed"] = bool(result.get("changed"))
            if event == "runner_on_failed":
                data["deploy_rescued"] = not data["ignore_errors"] and _is_rescued(task)
            elif event == "runner_on_unreachable":
                data["deploy_ignored"] = bool(task.ignore_unreachable)
        context: AbstractContextManager[None] = super().capture_event_data(event, **data)
        return context

    def v2_playbook_on_play_start(self, play: Any) -> None:  # noqa: ANN401
        """Each task forks this process for each host; its garbage collector need not look at what is here."""
        gc.freeze()
        gc.set_threshold(_GARBAGE_THRESHOLD)
        super().v2_playbook_on_play_start(play)

    def deploy_play_ended(self, hosts: list[str]) -> None:
        """From our strategies: the hosts on which the last task of the play ended."""
        with self.capture_event_data("deploy_play_ended", hosts=hosts):
            pass

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
