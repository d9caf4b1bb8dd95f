"""Tasks with nothing to do end in Ansible's own process, not in one that is forked to find that out.

Their condition is false, their loop has no items, or their action plugin says so by ``ends_at_once``: a
static method that takes the task's arguments and variables and gives a result, None where there is work. What
such a process would say is said here: Ansible's TaskExecutor evaluates ``loop`` and ``when`` before all else.
"""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from ansible._internal._task import TaskContext
from ansible._internal._templating._engine import TemplateEngine
from ansible.executor import task_result
from ansible.executor.task_queue_manager import FinalQueue
from ansible.playbook.task import Task
from ansible.plugins.loader import action_loader

_RawTaskResult = task_result._RawTaskResult  # noqa: SLF001 - what a worker sends
_SKIPPED = {"changed": False, "skipped": True, "skip_reason": "Conditional result was False"}
_NO_ITEMS = {"changed": False, "skipped": True, "skipped_reason": "No items in the list", "results": []}


def refuse_other_ansible() -> None:
    """Raises AttributeError or TypeError where what is used here is not as it is known."""
    inspect.signature(FinalQueue.send_task_result).bind(None, task_result=None)
    inspect.signature(Task._resolve_conditional).bind(None, None, None, result_context=None)  # noqa: SLF001
    inspect.signature(Task.update_result_no_log).bind(None, None, None)


def is_skipped(strategy: Any, host: Any, task: Any, task_vars: Any, play_context: Any) -> bool:  # noqa: ANN401
    """Whether a task has ended for a host, because it has nothing to do; else a worker has to look."""
    if task.loop_with or task.delegate_to:
        return False
    templar = TemplateEngine(strategy._loader, variables=task_vars)  # noqa: SLF001
    try:
        with TaskContext(task):
            result = _without_work(task, task_vars, templar)
    except Exception:  # noqa: BLE001 - a worker meets it again, and tells it
        return False
    if result is None:
        return False
    task.update_result_no_log(templar, result)
    known = {"host": host, "task": task, "task_vars": task_vars, "play_context": play_context}
    strategy._queued_task_cache[host.name, task._uuid] = known  # noqa: SLF001
    strategy._tqm.send_callback("v2_runner_on_start", host, task)  # noqa: SLF001
    sent = _RawTaskResult(host=host, task=task, return_data=result, task_fields=task.dump_attrs())
    strategy._final_q.send_task_result(sent)  # noqa: SLF001
    strategy._pending_results += 1  # noqa: SLF001
    return True


def _without_work(task: Any, task_vars: Any, templar: Any) -> dict[str, Any] | None:  # noqa: ANN401
    if task.loop is not None:
        has_none = isinstance(task.loop, str) and templar.template(task.loop) == []
        return {**_NO_ITEMS} if has_none else None
    false: dict[str, Any] = {}
    if task.when and not task._resolve_conditional(task.when, task_vars, result_context=false):  # noqa: SLF001
        return {**_SKIPPED, **false}
    ends_at_once = _asked_at_once(task.action)
    return ends_at_once(templar.template(task.args), task_vars) if ends_at_once else None


@cache
def _asked_at_once(action: str) -> Callable[..., dict[str, Any] | None] | None:
    # Ansible's own plugins have no such method, and are called by their full names.
    plugin = None if "." in action else action_loader.get(action, class_only=True)
    return getattr(plugin, "ends_at_once", None)
