"""What a user may ask for, as Slurm says it, and whether a form asks for that alone.

The hub compares a form with it, to answer at once; the helper compares again, and only what it let through
comes to sbatch. Everything that it takes is a name that Slurm said or a number within its limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+:-]{0,127}")
_NUMBER = re.compile(r"[0-9]{1,6}")
_GPU = re.compile(r"gpu(?::([A-Za-z0-9_.-]+))?:([0-9]+)")
_DAYS = re.compile(r"(?:([0-9]+)-)?([0-9]+):([0-9]+)(?::([0-9]+))?")
_IMAGE = re.compile(r"[A-Za-z0-9/](?:[A-Za-z0-9._/:#@+-]{0,510}[A-Za-z0-9])")
FIELDS = (
    *("partition", "account", "qos", "gpu_type", "gpus", "cpus", "memory_gb", "minutes", "environment"),
    "image",
)
OWN_IMAGE = "own:image"
"""The environment in which users name an image; no name of a site's has a colon."""
_COLUMNS = 3


class NotAllowedError(ValueError):
    """A choice that this user does not have; the text is for the user."""


@dataclass(frozen=True)
class Partition:
    """A partition that the user may use."""

    name: str
    minutes: int
    """The longest job, 0 for no limit."""
    gpus: Mapping[str, int]
    """By type the most GPUs of one node; the type is empty where GPUs have none."""
    accounts: frozenset[str] | None = None
    """The accounts whose jobs it takes; None for all."""
    denied: frozenset[str] = frozenset()
    qos: frozenset[str] | None = None
    """The QOS whose jobs it takes; None for all."""


@dataclass(frozen=True)
class Offers:
    """What one user may ask for."""

    partitions: Mapping[str, Partition]
    accounts: Mapping[str, tuple[str, ...]]
    """By account its QOS, the default first."""
    nodes: tuple[str, ...] = ()
    """The nodes of the partitions: where a server may be."""


@dataclass(frozen=True)
class Choices:
    """What a job is made from: names that Slurm said, and numbers."""

    partition: str
    account: str
    qos: str
    gpu_type: str
    gpus: int
    cpus: int
    memory_gb: int
    minutes: int
    environment: str
    image: str = ""
    """One that the user named; empty with an environment of the site."""

    def arguments(self) -> list[str]:
        """As options of sbatch, each one word."""
        gres = f"gpu:{self.gpu_type}:{self.gpus}" if self.gpu_type else f"gpu:{self.gpus}"
        return [
            f"--partition={self.partition}",
            f"--account={self.account}",
            *([f"--qos={self.qos}"] if self.qos else []),
            *([f"--gres={gres}"] if self.gpus else []),
            f"--cpus-per-task={self.cpus}",
            f"--mem={self.memory_gb}G",
            f"--time={self.minutes}",
        ]


def offers(partitions: str, gres: str, associations: str, limits: Mapping[str, Any]) -> Offers:
    """From what ``scontrol --oneliner show partition``, ``sinfo`` and ``sacctmgr`` said to the user.

    ``gres`` has lines of partition, GRES and node; ``associations`` of account, partition, QOS, default QOS.
    """
    accounts: dict[str, tuple[str, ...]] = {}
    bound: dict[str, set[str]] = {}
    for line in associations.splitlines():
        account, partition, all_qos, default, *_ = [*line.split("|"), "", "", "", ""]
        if not account:
            continue
        named = [name for name in (default, *all_qos.split(",")) if name]
        accounts[account] = tuple(dict.fromkeys([*accounts.get(account, ()), *named]))
        bound.setdefault(account, set()).add(partition)
    wanted = frozenset(limits["partitions"])
    gpus, nodes = _gpus(gres)
    found = [_partition(_words(line), gpus, accounts, bound) for line in partitions.splitlines() if line]
    usable = {
        each.name: each
        for each in found
        if each and (not wanted or each.name in wanted) and accounts_of(each, accounts)
    }
    return Offers(usable, accounts, tuple(sorted({name for each in usable for name in nodes.get(each, ())})))


def _words(line: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in line.split())
    return {key: value for key, _, value in pairs}


def _gpus(gres: str) -> tuple[dict[str, dict[str, int]], dict[str, list[str]]]:
    found: dict[str, dict[str, int]] = {}
    nodes: dict[str, list[str]] = {}
    for line in gres.splitlines():
        words = line.split()
        if len(words) < _COLUMNS:
            continue
        partition, node = words[0].rstrip("*"), words[-1]
        nodes.setdefault(partition, []).append(node)
        most = found.setdefault(partition, {})
        for kind, count in _GPU.findall(words[1]):
            most[kind] = max(most.get(kind, 0), int(count))
    return found, nodes


def _partition(
    said: Mapping[str, str],
    gpus: Mapping[str, Mapping[str, int]],
    accounts: Mapping[str, tuple[str, ...]],
    bound: Mapping[str, set[str]],
) -> Partition | None:
    name = said.get("PartitionName", "")
    if not name or said.get("State") != "UP":
        return None
    allowed, qos = _listed(said, "AllowAccounts"), _listed(said, "AllowQos")
    # Of an association that is for one partition Slurm takes jobs there alone.
    own = frozenset(account for account in accounts if {"", name} & bound[account])
    return Partition(
        name,
        _minutes(said.get("MaxTime", "")),
        dict(gpus.get(name, {})),
        own if allowed is None else own & allowed,
        _listed(said, "DenyAccounts") or frozenset(),
        qos,
    )


def _listed(said: Mapping[str, str], key: str) -> frozenset[str] | None:
    value = said.get(key, "ALL")
    return None if value in {"ALL", "NONE", "N/A", "(null)", ""} else frozenset(value.split(","))


def _minutes(text: str) -> int:
    """Of a time limit of Slurm's; 0 for none."""
    found = _DAYS.fullmatch(text)
    if not found:
        return 0
    days, first, second, third = (int(part or 0) for part in found.groups())
    hours, minutes = (first, second) if found[4] or found[1] else (0, first)
    return days * 24 * 60 + hours * 60 + minutes + (1 if third else 0)


def accounts_of(partition: Partition, accounts: Iterable[str]) -> list[str]:
    """Those that may be charged there."""
    return [
        account
        for account in accounts
        if account not in partition.denied and (partition.accounts is None or account in partition.accounts)
    ]


def qos_of(partition: Partition, qos: Iterable[str]) -> list[str]:
    """Those that may be used there."""
    return [name for name in qos if partition.qos is None or name in partition.qos]


def chosen(form: Mapping[str, object], may: Offers, limits: Mapping[str, Any]) -> Choices:
    """The choices of a form; raises NotAllowedError with a text for the user."""
    if unknown := sorted(set(form) - set(FIELDS)):
        raise NotAllowedError(f"The form has no field {unknown[0][:40]!r}.")
    text = {name: _text(name, form.get(name, "")) for name in FIELDS if name != "image"}
    if not may.partitions:
        raise NotAllowedError(NOTHING)
    partition = may.partitions.get(text["partition"])
    if partition is None:
        raise NotAllowedError(f"You may not use the partition {text['partition']!r}.")
    if text["account"] not in accounts_of(partition, may.accounts):
        raise NotAllowedError(f"You may not charge {text['account']!r} in partition {partition.name}.")
    if text["qos"] and text["qos"] not in qos_of(partition, may.accounts[text["account"]]):
        raise NotAllowedError(f"You may not use the QOS {text['qos']!r} with account {text['account']}.")
    image = _own_image(text["environment"], form.get("image", ""), limits)
    gpus = _number(
        "GPUs", text["gpus"] or "0", 0, min(int(limits["max_gpus"]), max(partition.gpus.values(), default=0))
    )
    kind = text["gpu_type"] if gpus else ""
    if gpus and kind not in partition.gpus:
        raise NotAllowedError(f"Partition {partition.name} has no GPUs of type {kind!r}.")
    if gpus > partition.gpus.get(kind, 0):
        raise NotAllowedError(
            f"A node of partition {partition.name} has {partition.gpus[kind]} GPUs of {kind}."
        )
    longest = min(int(limits["max_minutes"]), partition.minutes or int(limits["max_minutes"]))
    return Choices(
        partition.name,
        text["account"],
        text["qos"],
        kind,
        gpus,
        _number("CPUs", text["cpus"], 1, int(limits["max_cpus"])),
        _number("GB of memory", text["memory_gb"], 1, int(limits["max_memory_gb"])),
        _number("minutes", text["minutes"], 1, longest),
        text["environment"],
        image,
    )


def _own_image(environment: str, value: object, limits: Mapping[str, Any]) -> str:
    """The image that a user named, empty where the environment is the site's."""
    is_own = environment == OWN_IMAGE and bool(limits.get("own_images"))
    if not is_own and environment not in {each["name"] for each in limits["environments"]}:
        raise NotAllowedError(f"There is no environment {environment!r}.")
    if not is_own:
        if value != "":
            raise NotAllowedError("An image is named with the environment for images of your own alone.")
        return ""
    if not isinstance(value, str) or not is_image(value):
        raise NotAllowedError(
            "Name the image as srun --container-image takes it: the whole path of a file, "
            "as in /home/you/image.sqsh, or an address as in registry.site.example#team/image:1.0."
        )
    return value


def is_image(text: str) -> bool:
    """Whether a text is the whole path of a file without detours, or the address of an image."""
    return bool(_IMAGE.fullmatch(text)) and "//" not in text and ".." not in text.split("/")


NOTHING = (
    "No partition takes jobs of yours: your account in Slurm is missing, or no partition is open to it. "
    "Ask the cluster's admins; what Slurm knows of you shows: sacctmgr show assoc where user=$USER"
)


def _text(name: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise NotAllowedError(f"{name} has to be one word.")
    text = str(value)
    if text and not _NAME.fullmatch(text):
        raise NotAllowedError(f"{name} has to be a name or a number.")
    return text


def _number(what: str, text: str, least: int, most: int) -> int:
    number = int(text) if _NUMBER.fullmatch(text) else -1
    if not least <= number <= most:
        raise NotAllowedError(
            f"Ask for {least} to {most} {what}." if most >= least else f"There are no {what}."
        )
    return number
