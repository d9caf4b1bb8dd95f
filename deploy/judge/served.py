"""What machines have of a cluster already, as they said when they were checked."""

from collections.abc import Iterable, Mapping
from typing import Any

from deploy.judge.preview import asked_slurm
from deploy.run.events import Event, HostResult
from deploy.site.inventory import Host

Served = Mapping[str, Any]
"""By kind: the ``cluster`` that its slurm.conf is of, names of ``secrets``, whether it has a ``state``."""


def served(events: Iterable[Event]) -> dict[str, Served]:
    """By host what it has."""
    return {
        event.host: event.answer["serves"]
        for event in events
        if isinstance(event, HostResult) and event.answer and "serves" in event.answer
    }


def is_new_cluster(events: Iterable[Event]) -> bool:
    """Whether the controller has no slurm.conf, and no machine is of a cluster: nothing can be lost."""
    told = list(events)
    has_some = any(said["cluster"] or said["secrets"] for said in served(told).values())
    return asked_slurm(told).get("configured") is False and not has_some


def is_among(host: Host, said: Served) -> bool:
    """Whether a host is one of the controllers that a configuration names, by its name or its address."""
    controllers: Mapping[str, Any] = (said["cluster"] or {}).get("controllers", {})
    return host.name in controllers or host.cluster_address in controllers.values()
