"""What Slurm's commands print, as values; the same for Slurm 22.05 and 24.11."""

import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest

_KEY = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z0-9_/:.-]*)=")
_GRES = re.compile(r"([a-z_]+)(?::([^:(,]+))?:(\d+)")
_DAYS = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?$")
_PING = re.compile(r"Slurmctld\(\S+\) at (\S+) is (\w+)")


def records(text: str) -> list[dict[str, str]]:
    """A dictionary per line of ``scontrol --oneliner show``; a value may have blanks, as a reason has."""
    found = []
    for line in text.splitlines():
        keys = list(_KEY.finditer(line))
        record: dict[str, str] = {}
        for key, following in zip_longest(keys, keys[1:]):
            end = following.start() if following else len(line)
            # The first counts: a reason, which anybody may write, comes after what Slurm says itself.
            record.setdefault(key[1], line[key.end() : end].strip())
        if record:
            found.append(record)
    return found


def gpus(gres: str) -> dict[str, int]:
    """GPUs by type of a node's Gres, as in ``gpu:a100:4(S:0-1),gpu:v100:2,bandwidth:10G``."""
    found: dict[str, int] = {}
    for name, kind, count in _GRES.findall(gres):
        if name == "gpu":
            found[kind] = found.get(kind, 0) + int(count)
    return found


def tres(text: str) -> dict[str, str]:
    """Resources by name, as in ``cpu=1,mem=100M,gres/gpu=1``."""
    return dict(item.split("=", 1) for item in text.split(",") if "=" in item)


def minutes(text: str) -> float | None:
    """A time limit in minutes, in any form that slurm.conf(5) knows; None for no limit.

    ``minutes``, ``minutes:seconds``, ``hours:minutes:seconds``, ``days-hours``, ``days-hours:minutes`` and
    ``days-hours:minutes:seconds``. Raises ValueError for anything else.
    """
    if text.upper() in {"UNLIMITED", "INFINITE", "-1", "NONE", ""}:
        return None
    found = _DAYS.match(text)
    if not found:
        raise ValueError(text)
    days, *rest = found.groups()
    first, second, third = (int(part or 0) for part in rest)
    if days is not None:
        return int(days) * 1440 + first * 60 + second + third / 60
    if rest[2] is not None:
        return first * 60 + second + third / 60
    return first + second / 60


def controllers(text: str) -> dict[str, bool]:
    """``scontrol ping``: whether each controller is up, by name."""
    return {name: state == "UP" for name, state in _PING.findall(text)}


def associations(text: str) -> Iterator[tuple[str, str, str]]:
    """``sacctmgr --parsable2 show associations format=cluster,account,user,…``: cluster, account, user."""
    for line in text.splitlines():
        cluster, account, user, *_ = [*line.split("|"), "", "", ""]
        if account:
            yield cluster, account, user


def words(listing: str | None) -> frozenset[str]:
    """A list of names with commas; ``ALL`` and ``N/A`` mean none in particular."""
    names = frozenset(name.strip() for name in (listing or "").split(",") if name.strip())
    return names - {"ALL", "N/A", "(null)"}


def first_of(records_: list[dict[str, str]], key: str) -> Mapping[str, dict[str, str]]:
    """Records by the value of one of their keys."""
    return {record[key]: record for record in records_ if key in record}
