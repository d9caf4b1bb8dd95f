"""Ansible strategy plugin: mitogen's linear one (run/mitogen_linear.py); Ansible's own where that fails."""

from typing import Any

from ansible.plugins.loader import strategy_loader

from deploy.run.patches import Patch, apply

DOCUMENTATION = """
    name: deploy_linear
    short_description: Mitogen's linear strategy on all CPUs
    description:
        - What mitogen_linear does, with processes that the kernel may run on every CPU.
        - What linear does, where mitogen does not fit the installed Ansible.
"""


def _mitogen_linear() -> Any:  # noqa: ANN401 - Ansible has no types
    from deploy.run.mitogen_linear import MitogenLinear  # noqa: PLC0415

    return MitogenLinear


StrategyModule = apply(Patch.MITOGEN, _mitogen_linear) or strategy_loader.get("linear", class_only=True)
