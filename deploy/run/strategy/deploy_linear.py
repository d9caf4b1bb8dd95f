"""Ansible strategy plugin: mitogen's linear one, without its binding of processes to CPUs.

Mitogen gives the first CPU to its multiplexer and shares the others out. On a controller with two CPUs that
leaves one for Ansible, its workers and ssh together; what a task starts on the controller stays bound, too.

A connection is one Python on the host, not two (run/one_hop.py).

Every task of every host is a process forked from this one. What each of them would load for itself is loaded
here, once.
"""

import gc
from pathlib import Path
from typing import Any

import ansible_mitogen.affinity
import ansible_mitogen.loaders
import ansible_mitogen.planner
import ansible_mitogen.services
import ansible_mitogen.strategy
from ansible.plugins.loader import filter_loader, test_loader
from ansible.utils.collection_loader import AnsibleCollectionConfig

from deploy.run.one_hop import join_hops

DOCUMENTATION = """
    name: deploy_linear
    short_description: Mitogen's linear strategy on all CPUs
    description:
        - What mitogen_linear does, with processes that the kernel may run on every CPU.
"""


def _add_collections(invocation: Any) -> None:  # noqa: ANN401 - mitogen has no types
    """What mitogen does for a module of a collection, without importing every installed collection."""
    for root in AnsibleCollectionConfig.collection_paths:
        invocation._extra_sys_paths.update(map(str, Path(root).glob("ansible_collections/*/*")))  # noqa: SLF001


def _connection(name: str, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - mitogen has no types
    """Ansible's connection plugin; not a collection's, for which mitogen asks when its own are listed.

    Ansible would warn in every later run that the collection is not there.
    """
    return (None, None) if name == "kubectl" else _ansibles_connection(name, *arguments, **options)


_ansibles_connection = ansible_mitogen.loaders.connection_loader__get_with_context
ansible_mitogen.loaders.connection_loader__get_with_context = _connection
ansible_mitogen.affinity.policy = ansible_mitogen.affinity.Policy()
ansible_mitogen.planner._load_collections = _add_collections  # noqa: SLF001
join_hops(ansible_mitogen.services.ContextService)

_Linear: Any = ansible_mitogen.loaders.strategy_loader.get("linear", class_only=True)


class StrategyModule(ansible_mitogen.strategy.StrategyMixin, _Linear):  # type: ignore[misc]
    """Mitogen's linear strategy."""

    def run(self, *arguments: Any) -> Any:  # noqa: ANN401 - as in Ansible
        """Runs a play."""
        for loader in (filter_loader, test_loader):
            list(loader.all())
        gc.collect()
        gc.freeze()  # a collection in a worker would copy the memory that it shares with this process
        return super().run(*arguments)
