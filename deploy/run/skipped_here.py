"""Tasks whose condition is false end in Ansible's own process, not in one that is forked to find that out.

What such a process would say is said here: Ansible's TaskExecutor evaluates ``when`` before all else.
"""

import inspect
from typing import Any

from ansible._internal._task import TaskContext
from ansible._internal._templating._engine import TemplateEngine
from ansible.executor import task_result
from ansible.executor.task_queue_manager import FinalQueue
from ansible.playbook.task import Task

_RawTaskResult = task_result._RawTaskResult  # noqa: SLF001 - what a worker sends
_SKIPPED = {"changed": False, "skipped": True, "skip_reason": "Conditional result was False"}


def refuse_other_ansible() -> None:
    """Raises AttributeError or TypeError where what is used here is not as it is known."""
    inspect.signature(FinalQueue.send_task_result).bind(None, task_result=None)
    inspect.signature(Task._resolve_conditional).bind(None, None, None, result_context=None)  # noqa: SLF001
    inspect.signature(Task.update_result_no_log).bind(None, None, None)


def is_skipped(strategy: Any, host: Any, task: Any, task_vars: Any, play_context: Any) -> bool:  # noqa: ANN401
    """Whether a task has ended for a host, because its condition is false; else a worker has to look."""
    if not task.when or task.loop is not None or task.loop_with or task.delegate_to:
        return False
    false: dict[str, Any] = {}
    try:
        with TaskContext(task):
            if task._resolve_conditional(task.when, task_vars, result_context=false):  # noqa: SLF001
                return False
    except Exception:  # noqa: BLE001 - a worker meets it again, and tells it
        return False
    result = {**_SKIPPED, **false}
    task.update_result_no_log(TemplateEngine(strategy._loader, variables=task_vars), result)  # noqa: SLF001
    known = {"host": host, "task": task, "task_vars": task_vars, "play_context": play_context}
    strategy._queued_task_cache[host.name, task._uuid] = known  # noqa: SLF001
    strategy._tqm.send_callback("v2_runner_on_start", host, task)  # noqa: SLF001
    sent = _RawTaskResult(host=host, task=task, return_data=result, task_fields=task.dump_attrs())
    strategy._final_q.send_task_result(sent)  # noqa: SLF001
    strategy._pending_results += 1  # noqa: SLF001
    return True
