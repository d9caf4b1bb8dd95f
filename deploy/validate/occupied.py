"""Which nodes a burn-in takes, said before it takes them."""

from collections.abc import Iterator

from deploy.site.inventory import Site
from deploy.validate import slurm_text

_SHOWN = 20


def announced(site: Site, nodes: str, hours: float) -> Iterator[str]:
    """The lines; ``nodes`` is what ``scontrol --oneliner show nodes`` printed."""
    records = slurm_text.first_of(slurm_text.records(nodes), "NodeName")
    states = {node.name: records.get(node.name, {}).get("State", "unknown") for node in site.nodes}
    free = [name for name, state in states.items() if state == "IDLE"]
    others = [f"{name} ({state.lower()})" for name, state in states.items() if name not in free]
    yield f"burn-in for {hours:g} h: {_list(free) or 'no node is idle'}"
    if others:
        yield f"left alone until idle: {_list(others)}"
    if free:
        yield "users' jobs wait there for at most ten minutes, and then go first; Ctrl-C ends it at once"


def _list(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
