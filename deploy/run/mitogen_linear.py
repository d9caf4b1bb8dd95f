"""Mitogen's linear strategy, without its binding of processes to CPUs.

Mitogen gives the first CPU to its multiplexer and shares the others out. On a controller with two CPUs that
leaves one for Ansible, its workers and ssh together; what a task starts on the controller stays bound, too.

A connection is one Python on the host, not two (direct_sudo.py), and ends where the host says nothing any
more (keepalive.py); the host is called unreachable then (lost_hosts.py).

What a module imports of module_utils mitogen finds by compiling it and all that it imports, anew for every
module of every role; each file is compiled once.

Every task of every host is a process forked from this one. What each of them would load for itself is loaded
here, once; and that there is nothing to do is found out here (skipped_here.py).
"""

import gc
from collections.abc import Callable
from functools import cache
from typing import Any

import ansible_mitogen.affinity
import ansible_mitogen.connection
import ansible_mitogen.loaders
import ansible_mitogen.module_finder
import ansible_mitogen.planner
import ansible_mitogen.services
import ansible_mitogen.strategy
import ansible_mitogen.target
import mitogen.ssh
from ansible.executor import task_result
from ansible.plugins.loader import filter_loader, test_loader

from deploy.content import roles
from deploy.run.direct_sudo import join_hops
from deploy.run.keepalive import give_up_silent
from deploy.run.patches import Patch, apply, replace


def _leave_out_kubectl() -> None:
    """Mitogen asks for this connection plugin when its own are listed, and it is a collection's.

    Ansible would warn in every later run that the collection is not there.
    """
    ansibles = ansible_mitogen.loaders.connection_loader__get_with_context

    def connection(name: str, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - mitogen has no types
        return (None, None) if name == "kubectl" else ansibles(name, *arguments, **options)

    ansible_mitogen.loaders.connection_loader__get_with_context = connection


def _compile_once() -> None:
    """A name of the module's own is found before the built-in one."""
    ansible_mitogen.module_finder.compile = cache(compile)


def _run_in_place() -> None:
    # Here, so that mitogen is taken where it has no such parts any more.
    from deploy.run.not_forked import run_in_place  # noqa: PLC0415

    run_in_place(roles().parent)


def _lost_hosts() -> None:
    from deploy.run.lost_hosts import tell_lost_hosts  # noqa: PLC0415

    tell_lost_hosts(ansible_mitogen.planner, ansible_mitogen.connection.CallChain, ansible_mitogen.target)


_Linear: Any = ansible_mitogen.loaders.strategy_loader.get("linear", class_only=True)


class MitogenLinear(ansible_mitogen.strategy.StrategyMixin, _Linear):  # type: ignore[misc]
    """Mitogen's linear strategy."""

    def run(self, *arguments: Any) -> Any:  # noqa: ANN401 - as in Ansible
        """Runs a play."""
        apply(Patch.LOADED_ONCE, _load_once)
        return super().run(*arguments)

    def _queue_task(self, host: Any, task: Any, task_vars: Any, play_context: Any) -> None:  # noqa: ANN401
        if _is_skipped is None or not _is_skipped(self, host, task, task_vars, play_context):
            super()._queue_task(host=host, task=task, task_vars=task_vars, play_context=play_context)


def _skipped_here() -> Callable[..., bool]:
    # Here, so that mitogen is taken where Ansible has no such parts any more.
    from deploy.run.skipped_here import is_skipped, refuse_other_ansible  # noqa: PLC0415

    refuse_other_ansible()
    return is_skipped


def _load_once() -> None:
    for loader in (filter_loader, test_loader):
        list(loader.all())
    gc.collect()
    gc.freeze()  # a collection in a worker would copy the memory that it shares with this process


# Since 2.21 Ansible's processes send results of another kind, and such a task has one as any other.
_sends_raw_results = hasattr(task_result, "_RawTaskResult")
_is_skipped = apply(Patch.SKIPPED_HERE, _skipped_here) if _sends_raw_results else None
apply(Patch.NO_KUBECTL, _leave_out_kubectl)
apply(Patch.COMPILED_ONCE, _compile_once)
apply(Patch.EVERY_CPU, lambda: replace(ansible_mitogen.affinity, "policy", ansible_mitogen.affinity.Policy()))
apply(Patch.NOT_FORKED, _run_in_place)
apply(
    Patch.SILENT_HOSTS,
    lambda: give_up_silent(ansible_mitogen.connection.CONNECTION_METHOD, mitogen.ssh.Options),
)
apply(Patch.LOST_HOSTS, _lost_hosts)
apply(Patch.ONE_PYTHON, lambda: join_hops(ansible_mitogen.services.ContextService))
