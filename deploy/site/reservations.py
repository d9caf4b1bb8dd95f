"""Reservations: names, times, and the nodes and partitions that they name."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from deploy.errors import Finding
from deploy.site.inventory import NODE, Host, Site
from deploy.site.node_sets import expanded
from deploy.site.partitions import VARIABLE as PARTITIONS

RESERVATIONS = "slurm_reservations_planned"
_OF_DEPLOY = "deploy_"

Entry = Mapping[str, Any]


def declared_reservations(host: Host) -> list[Entry]:
    """The entries of a controller; what is no entry the schema names."""
    said = host.variables.get(RESERVATIONS)
    return [entry for entry in said if isinstance(entry, dict)] if isinstance(said, list) else []


def check_reservations(site: Site) -> Iterator[Finding]:
    """What is wrong with the reservations; their keys and types are the schema's business."""
    for controller in site.controllers:
        entries = declared_reservations(controller)
        where = controller.where(RESERVATIONS)
        counted = Counter(str(entry.get("name")) for entry in entries)
        for name in (name for name, count in counted.items() if count > 1):
            yield Finding(
                where,
                "duplicate-reservation",
                f"reservation {name} is declared twice",
                "give one another name",
            )
        for entry in entries:
            yield from _times(where, entry)
            yield from _members(site, controller, where, entry)


def _times(where: str, entry: Entry) -> Iterator[Finding]:
    name = entry.get("name")
    if bool(entry.get("end")) == bool(entry.get("duration")):
        has = "end and duration" if entry.get("end") else "neither end nor duration"
        yield Finding(where, "reservation-times", f"reservation {name} has {has}", "give it one of them")
        return
    try:
        start, end = (datetime.fromisoformat(str(entry[key])) for key in ("start", "end"))
    except (KeyError, ValueError):
        return
    if end <= start:
        message = f"reservation {name} ends at {entry['end']}, and begins at {entry['start']}"
        yield Finding(where, "reservation-times", message, "its end comes after its start")


def _members(site: Site, controller: Host, where: str, entry: Entry) -> Iterator[Finding]:
    name, compute = entry.get("name"), {node.name for node in site.nodes}
    if str(name).startswith(_OF_DEPLOY):
        message = f"reservation {name} has a name as deploy gives them to nodes that it drains"
        yield Finding(
            where, "reservation-of-deploy", message, f"a name that does not begin with {_OF_DEPLOY}"
        )
    unknown = [
        f"group {group}" for group in _texts(entry, "groups") if not compute & {*site.groups.get(group, ())}
    ]
    for expression in _texts(entry, "nodes"):
        members, reason = expanded(expression)
        unknown += sorted(members - compute) or ([f"{expression} ({reason})"] if reason else [])
    if unknown:
        message = f"reservation {name} names {', '.join(unknown)}: no compute node"
        yield Finding(where, "reservation-unknown", message, f"name hosts of [{NODE}], or groups of them")
    if entry.get("node_count") and (entry.get("nodes") or entry.get("groups")):
        message = f"reservation {name} has node_count, and nodes or groups"
        yield Finding(where, "reservation-nodes", message, "Slurm chooses so many nodes, or you name them")
    if entry.get("users") and entry.get("user_groups"):
        message = f"reservation {name} has users and user_groups, of which Slurm takes one"
        yield Finding(where, "reservation-users", message, "leave one out; accounts may be beside either")
    partitions = controller.value(PARTITIONS) or []
    known = [str(each.get("name")) for each in partitions if isinstance(each, dict)]
    if entry.get("partition") and entry["partition"] not in known:
        message = f"reservation {name} names partition {entry['partition']}, which is not declared"
        yield Finding(where, "reservation-unknown", message, f"one of {', '.join(known)}")


def _texts(entry: Entry, key: str) -> list[str]:
    said = entry.get(key)
    return [str(each) for each in said] if isinstance(said, list) else []
