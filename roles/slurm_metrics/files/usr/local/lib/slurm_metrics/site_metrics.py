"""Controllers, partitions, shares and the accounting daemon."""

from __future__ import annotations

import os
import re
import socket
from collections import defaultdict

from families import Labels, gauge
from prometheus_client import Metric

CONTROLLERS = ("scontrol", "ping")
PARTITIONS = ("scontrol", "--all", "--oneliner", "show", "partitions")
CONFIGURATION = ("scontrol", "show", "config")
SHARES = (
    *("sshare", "--all", "--parsable2", "--noheader"),
    "--format=Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare",
)
ACCOUNTING = ("sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=Cluster,ControlHost")
_PING = re.compile(r"Slurmctld\(([^)]*)\) at (\S+) is (\w+)")
_HOST = re.compile(r"^SlurmctldHost\[\d+\]\s+= ([^\s(]+)(?:\(([^)]+)\))?", re.MULTILINE)
_SETTING = re.compile(r"^(\w+)\s+= (.*?)\s*$", re.MULTILINE)
_THREADS = re.compile(r"(?:^|,)conmgr_threads=([1-9]\d*)", re.IGNORECASE)
_PARTITION_STATES = ("up", "down", "drain", "inactive")


def controllers(text: str, _: float) -> list[Metric]:
    """Which controllers answer. Raises ValueError when none is named."""
    found: dict[Labels, float] = {
        (name, role): float(state == "UP") for role, name, state in _PING.findall(text)
    }
    if not found:
        raise ValueError(text)
    return [
        gauge("slurm_controller_up", "Whether a slurmctld answers.", ["controller", "role"], found),
    ]


def partitions(text: str, _: float) -> list[Metric]:
    """Whether partitions take jobs and run them."""
    states: dict[Labels, float] = {}
    for line in text.splitlines():
        words = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if "PartitionName" in words:
            for state in _PARTITION_STATES:
                states[words["PartitionName"], state] = float(words.get("State", "").lower() == state)
    return [gauge("slurm_partition_state", "1 for the state of a partition.", ["partition", "state"], states)]


class Slurmctld:
    """What slurmctld says of itself, and which of several leads, by the one that slurmdbd has registered."""

    def __init__(self) -> None:
        self._cluster = ""
        self._addresses: dict[str, str] = {}

    def configuration(self, text: str, now: float) -> list[Metric]:
        """What ``configuration`` says, of which the cluster's name and its controllers are kept."""
        metrics = configuration(text, now)
        self._cluster = dict(_SETTING.findall(text))["ClusterName"]
        self._addresses = {name: _resolved(address or name) for name, address in _HOST.findall(text)}
        return metrics

    def accounting(self, text: str, _: float) -> list[Metric]:
        """The daemon answered; who leads of several. Raises ValueError when it knows no cluster."""
        if not text.strip():
            raise ValueError(text)
        hosts = dict(line.split("|")[:2] for line in text.splitlines() if "|" in line)
        leader = hosts.get(self._cluster, "")
        if len(self._addresses) == 1 or leader not in self._addresses.values():
            return []
        first = next(iter(self._addresses))
        leads: dict[Labels, float] = {
            (name, "primary" if name == first else "backup"): float(address == leader)
            for name, address in self._addresses.items()
        }
        meaning = "Which of several slurmctld leads, as slurmdbd has it registered."
        return [gauge("slurm_controller_leads", meaning, ["controller", "role"], leads)]


def _resolved(address: str) -> str:
    """An address as slurmdbd sees it; what cannot be resolved stays a name."""
    try:
        return str(socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return address


def threads(version: str, parameters: str, cpus: int) -> int:
    """How many calls slurmctld answers at a time, by its release, SlurmctldParameters and its host's CPUs."""
    release = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if release < (24, 11):
        return 256
    if said := _THREADS.search(parameters):
        return int(said[1])
    if release < (25, 5):
        return 64
    return 2 * cpus if release < (25, 11) else min(32, 2 * cpus)


def configuration(text: str, _: float) -> list[Metric]:
    """What runs, since when, its limits. Raises KeyError when it is not slurmctld's configuration."""
    found = dict(_SETTING.findall(text))
    booted = found["BOOT_TIME"]
    return [
        gauge(
            "slurm_info",
            "1, with the name of the cluster and Slurm's version.",
            ["cluster", "version"],
            {(found["ClusterName"], found["SLURM_VERSION"]): 1},
        ),
        gauge(
            "slurm_controller_start_timestamp_seconds",
            "When slurmctld started.",
            [],
            {(): float(booted)} if booted.isdigit() else {},
        ),
        gauge(
            "slurm_scheduler_threads_max",
            "How many threads of slurmctld answer somebody at most.",
            [],
            {(): threads(found["SLURM_VERSION"], found.get("SlurmctldParameters", ""), os.cpu_count() or 1)},
        ),
        gauge(
            "slurm_scheduler_dbd_queue_max",
            "How many messages may wait for slurmdbd; slurmctld loses some beyond it.",
            [],
            {(): float(waiting)} if (waiting := found.get("MaxDBDMsgs", "")).isdigit() else {},
        ),
    ]


def shares(text: str, _: float) -> list[Metric]:
    """Fair share of accounts and users; an account's own line has an empty user."""
    factors: dict[Labels, float] = {}
    wanted: dict[Labels, float] = {}
    used: dict[Labels, float] = {}
    seconds: dict[Labels, float] = defaultdict(float)
    for line in text.splitlines():
        account, user, _raw, norm, usage, effective, factor = (word.strip() for word in line.split("|"))
        key = (account, user)
        for values, word in ((wanted, norm), (used, effective), (factors, factor), (seconds, usage)):
            if word and word not in ("nan", "inf"):
                values[key] = float(word)
    labels = ["account", "user"]
    return [
        gauge(
            "slurm_fairshare_factor", "0 for who used far too much, 1 for who used nothing.", labels, factors
        ),
        gauge("slurm_fairshare_shares_ratio", "Which part of its siblings' shares it has.", labels, wanted),
        gauge("slurm_fairshare_usage_ratio", "Which part of its siblings' usage it had.", labels, used),
        gauge("slurm_fairshare_usage_seconds", "Its usage in TRES seconds, decayed.", labels, seconds),
    ]
