"""Controllers, partitions, shares and the accounting daemon."""

from __future__ import annotations

import re
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
ACCOUNTING = ("sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=Cluster")
_PING = re.compile(r"Slurmctld\(([^)]*)\) at (\S+) is (\w+)")
_SETTING = re.compile(r"^(\w+)\s+= (.*?)\s*$", re.MULTILINE)
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


def configuration(text: str, _: float) -> list[Metric]:
    """What runs, and since when. Raises KeyError when it is not slurmctld's configuration."""
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
        gauge("slurm_fairshare_usage_ratio", "Which part of the cluster's usage it had.", labels, used),
        gauge("slurm_fairshare_usage_seconds", "Its usage in TRES seconds, decayed.", labels, seconds),
    ]


def accounting(text: str, _: float) -> list[Metric]:
    """The daemon answered. Raises ValueError when it knows no cluster."""
    if not text.strip():
        raise ValueError(text)
    return []
