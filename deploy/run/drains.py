"""What deploy runs on a controller to take nodes out of service and to give them back.

Slurm keeps one reason for each node. The ledger keeps every drain: who made it, why and since when, so that
a resume releases the caller's own drains and no other. What holds a node without deploy (the node's health
check, a reboot, somebody's scontrol) is recognized by Slurm's reason, and stays in force.

Sent as text over ssh and run as root, with the standard library of Python 3.9 alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

LEDGER = Path("/var/lib/deploy/drains.json")
_SECONDS = 15
_ON_A_NODE = "running,suspended,completing,configuring,stopped"
# Whoever gave these reasons takes them back by himself: a reboot of deploy's, and node_health.
_BY_ITSELF = re.compile(r"deploy: maintenance$|node_health: ")
_FIELDS = re.compile(r" Reason=(?P<reason>.*?) \[(?P<by>[^\]@]+)@(?P<since>\S+)\]\s*(?= Comment=| Extra=|$)")


def _run(*command: str) -> tuple[str, bool]:
    """What a command prints, and whether it succeeded; whatever happens is an answer."""
    try:
        done = subprocess.run(
            ("timeout", str(_SECONDS), *command),
            env={**os.environ, "LC_ALL": "C", "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as problem:
        return type(problem).__name__, False
    return done.stdout, done.returncode == 0


class SilentError(Exception):
    """Slurm's controller does not answer, or refuses; the text is what it says."""

    def __init__(self, command: tuple[str, ...], said: str) -> None:
        super().__init__(f"{' '.join(command[:3])}: {said.strip() or 'no answer'}")


def _must(*command: str) -> str:
    said, succeeded = _run(*command)
    if not succeeded:
        raise SilentError(command, said)
    return said


def _nodes() -> dict[str, dict[str, Any]]:
    """All nodes as Slurm has them: ``states``, ``partitions``, ``reason``, and ``by``, ``since`` of that.

    ``started`` is when its slurmd was started.
    """
    found = {}
    for line in _must("scontrol", "--oneliner", "show", "node").splitlines():
        name = re.match(r"NodeName=(\S+)", line)
        state = re.search(r" State=(\S+)", line)
        if name and state:
            said = _FIELDS.search(line)
            # Some versions write a star for a node that does not answer.
            said_states = state.group(1).replace("*", "+NOT_RESPONDING")
            states = [word for word in re.split(r"[+~#$!%@^-]", said_states) if word]
            started = re.search(r" SlurmdStartTime=(\S+)", line)
            partitions = re.search(r" Partitions=(\S+)", line)
            found[name.group(1)] = {
                "states": states,
                "partitions": partitions.group(1).split(",") if partitions else [],
                "started": started.group(1) if started else "",
                **(said.groupdict() if said else {"reason": "", "by": "", "since": ""}),
            }
    return found


def _jobs() -> list[list[str]]:
    """The jobs on nodes: number, user, nodes as Slurm folds them."""
    words = ("--noheader", "--all", "--states", _ON_A_NODE, "--format", "%i|%u|%N")
    rows = (line.strip().split("|") for line in _must("squeue", *words).splitlines())
    return [row for row in rows if len(row) == words[-1].count("%")]


def words(entry: dict[str, Any]) -> str:
    """The reason that Slurm shows for an entry."""
    return str(entry["why"]) if entry.get("is_foreign") else f"deploy: {entry['why']} ({entry['who']})"


class UnknownError(Exception):
    """Slurm has no nodes of the names in ``args``."""


@contextlib.contextmanager
def _ledger(names: list[str]) -> Iterator[tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]]:
    """The entries in force, and the nodes; what was changed of the entries is written when nothing failed.

    One at a time. Raises UnknownError where Slurm does not know one of ``names``.
    """
    LEDGER.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    with open(LEDGER.parent / ".drains.lock", "w") as lock:  # noqa: PTH123 - 3.9 flocks what open gives
        fcntl.flock(lock, fcntl.LOCK_EX)
        before, nodes = _entries(), _nodes()
        unknown = [name for name in names if name not in nodes]
        if unknown:
            raise UnknownError(*unknown)
        entries = _in_force(before, nodes)
        yield entries, nodes
        if entries != before:
            _write(entries)


def _entries() -> list[dict[str, Any]]:
    try:
        return list(json.loads(LEDGER.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return []


def _write(entries: list[dict[str, Any]]) -> None:
    """On disk before it takes the old one's place: a power cut leaves the one or the other."""
    new = LEDGER.with_suffix(".new")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123
        json.dump(entries, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    new.replace(LEDGER)
    directory = os.open(LEDGER.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _in_force(entries: list[dict[str, Any]], nodes: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries of nodes that Slurm still has drained: whoever resumed another one by hand released it."""
    return [entry for entry in entries if "DRAIN" in nodes.get(entry["node"], {"states": ()})["states"]]


def _seconds(moment: str) -> int:
    """Since 1970, of a time as Slurm writes it in the controller's own zone; now where it is none."""
    try:
        return int(time.mktime(time.strptime(moment, "%Y-%m-%dT%H:%M:%S")))
    except ValueError:
        return int(time.time())


def _set(node: str, state: str, reason: str = "") -> None:
    more = (f"Reason={reason}",) if reason else ()
    _must("scontrol", "update", f"NodeName={node}", f"State={state}", *more)


def _listed(entries: list[dict[str, Any]]) -> dict[str, Any]:
    nodes = _nodes()
    held = [{**entry, "shown": words(entry)} for entry in _in_force(entries, nodes)]
    return {"nodes": nodes, "jobs": _jobs(), "held": held}


def listed() -> dict[str, Any]:
    """Nodes, jobs, and the entries in force (``held``, each with the ``shown`` reason); changes nothing."""
    return _listed(_entries())


def drain(names: list[str], who: str, why: str) -> dict[str, Any]:
    """Drains nodes; all of them or, with UnknownError, none.

    A reason of somebody's own stays what Slurm shows; one whose giver takes it back by himself is kept in the
    ledger, and comes back when this one is released.
    """
    with _ledger(names) as (entries, nodes):
        reasons = {}
        for name in names:
            node, entry = nodes[name], {"node": name, "who": who, "why": why, "since": int(time.time())}
            if any((e["node"], e["who"], e["why"]) == (name, who, why) for e in entries):
                continue
            known = [words(e) for e in entries if e["node"] == name]
            is_foreign = "DRAIN" in node["states"] and node["reason"] not in known
            comes_back = is_foreign and bool(_BY_ITSELF.match(node["reason"]))
            if comes_back:
                kept = {"who": node["by"], "why": node["reason"], "since": _seconds(node["since"])}
                entries.append({"node": name, **kept, "is_foreign": True})
            entries.append(entry)
            if comes_back or not is_foreign:
                reasons[name] = words(entry)
        # An entry without a drain is out of force; a drain without its entry could be released by nobody.
        _write(entries)
        for name, reason in reasons.items():
            _set(name, "DRAIN", reason)
        return _listed(entries)


def resume(names: list[str], who: str, why: str | None = None) -> dict[str, Any]:
    """Releases the drains that ``who`` made of nodes; a node that nothing else holds is resumed.

    With ``why`` only those for that reason. ``released`` are the entries, ``resumed`` the nodes. Raises
    UnknownError, and then none was.
    """
    with _ledger(names) as (entries, nodes):
        released, resumed = [], []
        for name in names:
            mine = [
                e
                for e in entries
                if (e["node"], e["who"]) == (name, who)
                and not e.get("is_foreign")
                and why in {None, e["why"]}
            ]
            others = [e for e in entries if e["node"] == name and e not in mine]
            if not mine:
                continue
            if nodes[name]["reason"] in map(words, mine):
                if others:
                    _set(name, "DRAIN", words(others[-1]))
                else:
                    _set(name, "RESUME")
                    resumed.append(name)
            entries[:] = [e for e in entries if e not in mine]
            # What only Slurm's reason holds again needs no entry.
            if others and all(e.get("is_foreign") for e in others):
                entries[:] = [e for e in entries if e not in others]
            released += mine
        return {**_listed(entries), "released": released, "resumed": resumed}


def main(verb: str, arguments: dict[str, Any]) -> None:
    """Does what it is asked for and prints the answer as one line."""
    verbs: dict[str, Callable[..., Any]] = {"listed": listed, "drain": drain, "resume": resume}
    try:
        answer = verbs[verb](**arguments)
    except UnknownError as problem:
        answer = {"unknown": problem.args}
    except (SilentError, OSError, ValueError) as problem:
        answer = {"trouble": str(problem)}
    sys.stdout.write("\ndeploy:" + json.dumps(answer) + "\n")
