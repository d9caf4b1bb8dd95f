"""Job scripts for the page of jobs: the site's texts below a head that fits a partition and its user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from portal_choices import NotAllowedError, Offers, Partition, accounts_of, chosen

_NOTHING = "There is no such template for this partition."


@dataclass(frozen=True)
class Template:
    """A script that its user may submit as it is."""

    name: str
    title: str
    partition: str
    script: str

    def shown(self) -> dict[str, str]:
        """For a page."""
        return asdict(self)


def templates(may: Offers, settings: Mapping[str, Any]) -> list[Template]:
    """By partition, those of the site that are for it."""
    return [
        Template(each["name"], each["title"], partition.name, _script(each, partition, may, settings))
        for partition in may.partitions.values()
        for each in settings["templates"]
        if partition.name in (each.get("partitions") or [partition.name])
    ]


def one_of(may: Offers, settings: Mapping[str, Any], name: object, partition: object) -> Template:
    """The one of these names; raises NotAllowedError where this user has none."""
    for found in templates(may, settings):
        if (found.name, found.partition) == (name, partition):
            return found
    raise NotAllowedError(_NOTHING)


def _script(each: Mapping[str, Any], partition: Partition, may: Offers, settings: Mapping[str, Any]) -> str:
    head = "\n".join(f"#SBATCH {word}" for word in _head(each["name"], partition, may, settings))
    return f"#!/bin/bash -l\n{head}\n{each['script'].rstrip()}\n"


def _head(name: str, partition: Partition, may: Offers, settings: Mapping[str, Any]) -> Iterator[str]:
    """What the form would say at first, as far as the partition has it."""
    wanted = settings["defaults"]
    kind, most = next(iter(partition.gpus.items()), ("", 0))
    longest = min(settings["max_minutes"], partition.minutes or settings["max_minutes"])
    form = {
        "partition": partition.name,
        "account": accounts_of(partition, may.accounts)[0],
        "gpu_type": kind,
        "gpus": min(max(wanted.get("gpus", 0), 1), most, settings["max_gpus"]),
        "cpus": min(wanted.get("cpus", 1), settings["max_cpus"]),
        "memory_gb": min(wanted.get("memory_gb", 1), settings["max_memory_gb"]),
        "minutes": min(wanted.get("minutes", 60), longest),
        "environment": "plain",
    }
    yield f"--job-name={name}"
    yield from chosen(form, may, settings).arguments()
    yield "--output=%x-%j.out"
