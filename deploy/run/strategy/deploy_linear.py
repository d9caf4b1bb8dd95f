"""Ansible strategy plugin: mitogen's linear one, without its binding of processes to CPUs.

Mitogen gives the first CPU to its multiplexer and shares the others out. On a controller with two CPUs that
leaves one for Ansible, its workers and ssh together; what a task starts on the controller stays bound, too.
"""

from typing import Any

import ansible_mitogen.affinity
import ansible_mitogen.loaders
import ansible_mitogen.strategy

DOCUMENTATION = """
    name: deploy_linear
    short_description: Mitogen's linear strategy on all CPUs
    description:
        - What mitogen_linear does, with processes that the kernel may run on every CPU.
"""

ansible_mitogen.affinity.policy = ansible_mitogen.affinity.Policy()

_Linear: Any = ansible_mitogen.loaders.strategy_loader.get("linear", class_only=True)


class StrategyModule(ansible_mitogen.strategy.StrategyMixin, _Linear):  # type: ignore[misc]
    """Mitogen's linear strategy."""
