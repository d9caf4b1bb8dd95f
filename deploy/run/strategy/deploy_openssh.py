"""Ansible strategy plugin: Ansible's own linear one, which tells how each play ended."""

from typing import Any

from ansible.plugins.loader import strategy_loader

from deploy.run.play_end import TellsItsEnd

DOCUMENTATION = """
    name: deploy_openssh
    short_description: Ansible's linear strategy, telling how each play ended
    description:
        - What linear does, with an event at the end of each play.
"""

_Linear: Any = strategy_loader.get("linear", class_only=True)


class StrategyModule(TellsItsEnd, _Linear):  # type: ignore[misc]
    """Ansible's linear strategy."""
