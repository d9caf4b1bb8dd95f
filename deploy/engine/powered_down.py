"""The nodes that Slurm has switched off: no run reaches them, and nothing is wrong with that."""

from collections.abc import Collection, Mapping
from typing import Any

from deploy.errors import Finding, Severity
from deploy.run.ssh import Login, Unanswered, ask
from deploy.site.inventory import Host, Site
from deploy.site.node_lists import fold
from deploy.site.power_saving import is_cloud, power_saved

_AWAY = frozenset({"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP"})
"""The last of them: Slurm waits for the machine, which may not have started yet."""


def powered_down(site: Site, login: Login, named: Collection[str] | None) -> frozenset[str]:
    """Of the nodes that Slurm switches, and ``named`` (all without it), those that it has switched off.

    A cloud node that Slurm does not know as one yet is among them where no machine answers.
    """
    nodes = [node for node in power_saved(site) if named is None or node.name in named]
    if not nodes:
        return frozenset()
    controllers = _answers(site.controllers, site, login).values()
    states: Mapping[str, Any] = next((found for found in controllers if _is_told(found)), {})
    away = {node.name for node in nodes if _AWAY & {*states.get(node.name, ())}}
    unknown = [node for node in nodes if is_cloud(node) and "CLOUD" not in states.get(node.name, ())]
    away |= {name for name, said in _answers(unknown, site, login).items() if _is_silent(said)}
    return frozenset(away)


def _answers(hosts: Collection[Host], site: Site, login: Login) -> dict[str, Any]:
    return ask({host.name: ("power", {}) for host in hosts}, site.hosts, login, source="slurm_look")


def _is_told(answer: object) -> bool:
    return not isinstance(answer, Unanswered) and bool(answer)


def _is_silent(answer: object) -> bool:
    return isinstance(answer, Unanswered) and not answer.is_by_choice


def said_of(names: Collection[str], again: str) -> tuple[Finding, ...]:
    """What is said of nodes that a run leaves out; ``again`` is what was typed."""
    if not names:
        return ()
    nodes = fold(sorted(names))
    return (
        Finding(
            nodes,
            "node-powered-down",
            "left out: Slurm has switched it off, or nobody has made it yet",
            f"{again}   (when it is there; to have it now, on the controller: scontrol update "
            f"nodename={nodes} state=power_up)",
            Severity.WARNING,
        ),
    )
