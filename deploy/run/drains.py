"""What deploy runs on a controller to take nodes out of service and to give them back.

Slurm keeps one reason for each node. The ledger keeps every drain: who made it, why and since when, so that
a resume releases the caller's own drains and no other. What holds a node without deploy (the node's health
check, a reboot, somebody's scontrol) is recognized by Slurm's reason, and stays in force. Several controllers
have one ledger (drain_ledger.py), so that it is the same whichever of them is asked. What is answered is
saved, by Slurm, too (slurm_saves.py): a node that Slurm has not drained has no entry in force.

Sent as text over ssh and run as root, with the standard library of Python 3.9 alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from pathlib import Path

from deploy.run.drain_ledger import AwayError, locked, place
from deploy.run.host_commands import runner, tell
from deploy.run.slurm_saves import saved_nodes, saved_reservations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

LEDGER = Path("/var/lib/deploy/drains.json")
"""Of the one controller; several have it elsewhere, under the same name."""
RESERVATIONS = "reservations.json"
"""Beside the ledger: by the name of a reservation who made it and why, which Slurm 22.05 has no place for."""
REMEDIES = "remedies.json"
"""Beside the ledger: what `deploy node repair` did to which node, and when, for a day."""
_DAY = 86400
_TO_END_JOBS = 40
"""Seconds after which Slurm has killed what did not end when it was told to: slurm.conf(5), KillWait."""
_TO_SAVE = 15
"""Seconds for which slurmctld is given time to save what it was told."""
_PAUSE = 0.25
_ON_A_NODE = "running,suspended,completing,configuring,stopped"
# Whoever gave these reasons takes them back by himself: a reboot of deploy's, and node_health.
_BY_ITSELF = re.compile(r"deploy: maintenance(?= : |$)|node_health: .*")
# Slurm's own, for which nobody else answers; those of nodes that are down go when they register. A jobid is
# there twice where slurmctld died with what it had not yet saved, and gave the number of a lost job again.
_BY_SLURM = re.compile(
    r"(Kill task failed|Prolog error|Epilog error|batch job complete failure|Duplicate jobid)(?= : |$)"
)
_FIELDS = re.compile(
    r" Reason=(?P<reason>.*?) \[(?P<by>[^\]@]+)@(?P<since>\S+)\]\s*"
    r"(?= (?:Comment|Extra|InstanceId|InstanceType|ReservationName|TLSCertTokenSet|Topology)=|$)"
)
_run = runner(15)


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


def is_shown(entry_words: str, reason: str) -> bool:
    """Whether Slurm's reason of a node is an entry's: to one that it has Slurm adds what it finds itself.

    As in "fan (alice) : Not responding" of a node that is drained and then reboots.
    """
    return reason == entry_words or reason.startswith(f"{entry_words} : ")


def is_by_slurm(reason: str) -> bool:
    """Whether a reason is one that Slurm gives itself, when a job's end or beginning failed on a node."""
    return bool(_BY_SLURM.match(reason))


def is_by_health_check(reason: str) -> bool:
    """Whether a reason is one of the node's own health check."""
    return reason.startswith("node_health: ")


class UnknownError(Exception):
    """Slurm has no nodes of the names in ``args``."""


class UnsavedError(Exception):
    """Slurm does as it was told, and has not saved it in the directory that is ``args``."""


@contextlib.contextmanager
def _ledger(names: list[str]) -> Iterator[tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]]:
    """The entries in force, and the nodes; what was changed of the entries is written when nothing failed.

    One at a time. Raises UnknownError where Slurm does not know one of ``names``, and UnsavedError.
    """
    with locked(LEDGER.parent):
        before, nodes = _entries(), _nodes()
        unknown = [name for name in names if name not in nodes]
        if unknown:
            raise UnknownError(*unknown)
        entries = _in_force(before, nodes)
        yield entries, nodes
        if entries != before:
            _write(entries)
        _until_saved(names, nodes, {words(entry) for entry in entries})


def _until_saved(names: list[str], before: dict[str, dict[str, Any]], ours: set[str]) -> None:
    """Waits until Slurm has saved the drains of these nodes, as they are now, and deploy's reservations."""
    directory = _state_directory()
    deadline = time.monotonic() + _TO_SAVE
    is_told_again = False
    while True:
        nodes = _nodes()
        reasons = [node["reason"] for node in nodes.values()]
        shown = {name: nodes[name]["reason"] for name in names if name in nodes}
        changed = {
            before[name]["reason"] for name, reason in shown.items() if reason != before[name]["reason"]
        }
        drained = {name: reason for name, reason in shown.items() if reason in ours}
        drains = {reason: reasons.count(reason) for reason in changed | {*drained.values()} if reason}
        there = _planned()
        planned = {name: sum(each["name"] == name for each in there) for name in _read(RESERVATIONS, {})}
        if saved_nodes(directory, drains) and saved_reservations(directory, planned):
            return
        if time.monotonic() > deadline:
            raise UnsavedError(str(directory))
        if time.monotonic() > deadline - _TO_SAVE / 2 and not is_told_again:
            is_told_again = True
            _tell_again(drained, there)
        time.sleep(_PAUSE)


def _tell_again(drained: dict[str, str], planned: list[dict[str, Any]]) -> None:
    """What changes nothing, after which slurmctld saves: it does not try again where it could not."""
    for name, reason in drained.items():
        _set(name, "DRAIN", reason)
    for each in planned:
        _must("scontrol", "update", f"ReservationName={each['name']}", f"Nodes={','.join(each['nodes'])}")


def _state_directory() -> Path:
    for line in _must("scontrol", "show", "config").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "StateSaveLocation":
            return Path(value.strip())
    raise SilentError(("scontrol", "show", "config"), "it does not say StateSaveLocation")


def _entries() -> list[dict[str, Any]]:
    return list(_read(LEDGER.name, []))


def _read(name: str, otherwise: Any) -> Any:  # noqa: ANN401 - it is JSON
    try:
        return json.loads((place(LEDGER.parent) / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return otherwise


def _write(entries: Any, name: str | None = None) -> None:  # noqa: ANN401
    """On disk before it takes the old one's place: a power cut leaves the one or the other."""
    path = place(LEDGER.parent) / (name or LEDGER.name)
    new = path.with_suffix(".new")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123
        json.dump(entries, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
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
    return {"nodes": nodes, "jobs": _jobs(), "held": held, "planned": _planned()}


def listed() -> dict[str, Any]:
    """Nodes, jobs, the entries in force (``held``, each with the ``shown`` reason), and what is ``planned``.

    That are deploy's reservations: ``name``, ``who``, ``why``, ``nodes``, ``start`` and the seconds ``left``
    until then; ``user`` where one may have jobs there. Changes nothing.
    """
    return _listed(_entries())


def _planned() -> list[dict[str, Any]]:
    """The reservations that ``plan`` and ``lend`` made and Slurm still has."""
    known, found = _read(RESERVATIONS, {}), []
    for line in _must("scontrol", "--oneliner", "show", "reservation").splitlines() if known else ():
        said = dict(word.partition("=")[::2] for word in line.split())
        name = said.get("ReservationName", "")
        if name in known:
            start = _seconds(said["StartTime"])
            nodes = _must("scontrol", "show", "hostnames", said["Nodes"]).split()
            left = start - int(time.time())
            found.append({"name": name, **known[name], "nodes": nodes, "start": start, "left": left})
    return found


def _unplan(names: list[str], who: str, why: str | None) -> list[dict[str, Any]]:
    """Takes nodes out of the reservations that ``who`` made (for that reason); what was taken away."""
    gone = []
    for each in _planned():
        taken = [node for node in each["nodes"] if node in names]
        if each["who"] != who or why not in {None, each["why"]} or not taken:
            continue
        # Slurm keeps no reservation of nothing.
        if len(taken) == len(each["nodes"]):
            _delete(each)
        else:
            left = ",".join(node for node in each["nodes"] if node not in taken)
            _must("scontrol", "update", f"ReservationName={each['name']}", f"Nodes={left}")
        gone.append({**each, "nodes": taken})
    return gone


def _delete(reservation: dict[str, Any]) -> None:
    """Ends a reservation; that of a user whom nodes were lent to with the jobs that are left there."""
    command = ("scontrol", "delete", f"ReservationName={reservation['name']}")
    deadline = time.monotonic() + _TO_END_JOBS
    while reservation.get("user") and time.monotonic() < deadline:
        _run("scancel", f"--reservation={reservation['name']}")
        if _run(*command)[1]:
            return
        time.sleep(1)
    _must(*command)


def _seconds_of_jobs(names: list[str]) -> int | None:
    """How many seconds the jobs on nodes may still run, by their limits; None where one has no limit."""
    words = (
        "--noheader",
        "--all",
        "--states",
        _ON_A_NODE,
        "--nodelist",
        ",".join(names),
        "--format",
        "%l|%L",
    )
    longest = 0
    for line in _must("squeue", *words).splitlines():
        limit, _, left = line.strip().partition("|")
        days, _, clock = left.rpartition("-")
        parts = clock.split(":")
        if limit in {"UNLIMITED", "INVALID", "NOT_SET"} or not all(part.isdigit() for part in parts):
            return None
        seconds = sum(int(part) * 60**place for place, part in enumerate(reversed(parts)))
        longest = max(longest, int(days or 0) * 86400 + seconds)
    return longest


def plan(names: list[str], who: str, why: str, seconds: int | None) -> dict[str, Any]:
    """Reserves nodes for maintenance from so many ``seconds`` on, or from the end of the jobs that are there.

    Slurm starts no job there that would not end by then. The same again changes nothing. ``endless`` where
    the end of a job is not known. Raises UnknownError.
    """
    with _ledger(names):
        planned = [node for it in _planned() if (it["who"], it["why"]) == (who, why) for node in it["nodes"]]
        missing = [name for name in names if name not in planned]
        if missing:
            wait = _seconds_of_jobs(missing) if seconds is None else seconds
            if wait is None:
                return {**_listed(_entries()), "endless": True}
            _reserve(missing, who, why, wait)
    return listed()


def _reserve(names: list[str], who: str, why: str, seconds: int, user: str = "") -> str:
    """Its name; ``user`` may have jobs there."""
    known = {
        each["name"]: {key: each[key] for key in ("who", "why", "user") if key in each} for each in _planned()
    }
    name = f"deploy_{time.time_ns()}"
    # Known before it is there: a reservation that is not known would be nobody's.
    _write({**known, name: {"who": who, "why": why, **({"user": user} if user else {})}}, RESERVATIONS)
    _must(
        "scontrol",
        "create",
        f"ReservationName={name}",
        f"Users={user or 'root'}",
        "Flags=MAINT,IGNORE_JOBS",
        f"StartTime=now+{seconds}seconds" if seconds else "StartTime=now",
        "Duration=infinite",
        f"Nodes={','.join(names)}",
    )
    return name


def lend(names: list[str], who: str, why: str, user: str) -> dict[str, Any]:
    """Lets a user alone have jobs on nodes that ``who`` drained for that reason, until ``drain`` takes over.

    A reservation keeps everybody else away, also where nobody is left to drain them again. ``lent`` are the
    nodes, ``reservation`` is what the jobs name. What a health check or Slurm drained before is let go, as
    whoever lends a node found it well; what somebody else holds is not lent. Raises UnknownError.
    """
    with _ledger(names) as (entries, nodes):

        def is_ours(name: str) -> bool:
            mine, reason = _own(entries, name, who, why), nodes[name]["reason"]
            others = [entry for entry in entries if entry["node"] == name and entry not in mine]
            is_let_go = is_by_health_check(reason) or is_by_slurm(reason)
            return (
                bool(mine)
                and all(is_by_health_check(words(entry)) for entry in others)
                and (is_let_go or any(is_shown(words(entry), reason) for entry in mine))
            )

        lent = [name for name in names if is_ours(name)]
        name = _reserve(lent, who, why, 0, user) if lent else ""
        for node in lent:
            _set(node, "RESUME")
        entries[:] = [entry for entry in entries if entry["node"] not in lent]
        return {**_listed(entries), "lent": lent, "reservation": name}


def end(names: list[str], jobs: list[str]) -> dict[str, list[str]]:
    """Requeues those of the jobs that still are on nodes; those that cannot be requeued are cancelled."""
    words = ("--noheader", "--all", "--states", _ON_A_NODE, "--nodelist", ",".join(names), "--format", "%i")
    done: dict[str, list[str]] = {"requeued": [], "cancelled": []}
    for job in _must("squeue", *words).split():
        if job not in jobs:
            continue
        if _run("scontrol", "requeue", job)[1]:
            done["requeued"].append(job)
        else:
            _must("scancel", job)
            done["cancelled"].append(job)
    return done


def drain(names: list[str], who: str, why: str) -> dict[str, Any]:
    """Drains nodes; all of them or, with UnknownError, none. What is drained so, or held for it, stays so.

    A reason of somebody's own stays what Slurm shows; one whose giver takes it back by himself is kept in the
    ledger, and comes back when this one is released.
    """
    with _ledger(names) as (entries, nodes):
        reasons = {}
        for name in names:
            node, entry = nodes[name], {"node": name, "who": who, "why": why, "since": int(time.time())}
            if _own(entries, name, who, why):
                continue
            known = [words(e) for e in entries if e["node"] == name]
            is_ours = any(is_shown(each, node["reason"]) for each in known)
            is_foreign = "DRAIN" in node["states"] and not is_ours
            comes_back = _BY_ITSELF.match(node["reason"]) if is_foreign else None
            if comes_back:
                kept = {"who": node["by"], "why": comes_back.group(), "since": _seconds(node["since"])}
                entries.append({"node": name, **kept, "is_foreign": True})
            entries.append(entry)
            if comes_back or not is_foreign:
                reasons[name] = words(entry)
        # An entry without a drain is out of force; a drain without its entry could be released by nobody.
        _write(entries)
        for name, reason in reasons.items():
            _set(name, "DRAIN", reason)
        # The drain takes over from the reservation that prepared it.
        _unplan(names, who, why)
        return _listed(entries)


def _own(entries: list[dict[str, Any]], name: str, who: str, why: str | None) -> list[dict[str, Any]]:
    """The entries of a node that ``who`` made, for that reason or, without one, for any."""
    return [
        e
        for e in entries
        if (e["node"], e["who"]) == (name, who)
        and not e.get("is_foreign")
        and why in {None, e["why"], e.get("of")}
    ]


def hold(names: list[str], who: str, why: str, instead: str, until: str = "") -> dict[str, Any]:
    """Nodes that were drained for a reason stay so for another: what went wrong with it.

    The new one is released where ``why`` is. ``until`` says what must be so by then. Raises UnknownError.
    """
    with _ledger(names) as (entries, nodes):
        shown = {}
        for name in names:
            mine = _own(entries, name, who, why)
            now = int(time.time())
            entry = {"node": name, "who": who, "why": instead, "of": why, "until": until, "since": now}
            entries[:] = [e for e in entries if e not in mine] + [entry]
            is_ours = any(is_shown(words(each), nodes[name]["reason"]) for each in mine)
            if is_ours or "DRAIN" not in nodes[name]["states"]:
                shown[name] = words(entry)
        _write(entries)
        for name, reason in shown.items():
            _set(name, "DRAIN", reason)
        return _listed(entries)


def resume(names: list[str], who: str, why: str | None = None) -> dict[str, Any]:
    """Releases the drains that ``who`` made of nodes; a node that nothing else holds is resumed.

    With ``why`` only those for that reason, and what ``hold`` made of them. ``released`` are the entries,
    ``resumed`` the nodes. Raises UnknownError, and then none was.
    """
    with _ledger(names) as (entries, nodes):
        released, resumed = [], []
        for name in names:
            mine = _own(entries, name, who, why)
            others = [e for e in entries if e["node"] == name and e not in mine]
            if not mine:
                continue
            if any(is_shown(words(entry), nodes[name]["reason"]) for entry in mine):
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
        for each in _unplan(names, who, why):
            of = {"who": each["who"], "why": each["why"], "since": each["start"]}
            released += [{"node": node, **of} for node in each["nodes"]]
        return {**_listed(entries), "released": released, "resumed": resumed}


def resume_of_slurm(names: list[str]) -> dict[str, Any]:
    """Resumes nodes that Slurm itself drained for what jobs left, and that nobody else holds."""
    with _ledger(names) as (entries, nodes):
        held = {entry["node"] for entry in entries}
        for name in names:
            if "DRAIN" in nodes[name]["states"] and name not in held and is_by_slurm(nodes[name]["reason"]):
                _set(name, "RESUME")
    return listed()


def remedies(node: str = "", remedy: str = "") -> dict[str, Any]:
    """What was done to nodes within a day; one more, if it is given.

    Each is ``node``, ``remedy``, ``at``, and how many seconds ``ago`` that was.
    """
    with _ledger([node] if node else []):
        now = int(time.time())
        known = [entry for entry in _read(REMEDIES, []) if now - entry["at"] < _DAY]
        if node:
            known.append({"node": node, "remedy": remedy, "at": now})
            _write(known, REMEDIES)
    return {"remedies": [{**entry, "ago": now - entry["at"]} for entry in known]}


def main(verb: str, arguments: dict[str, Any]) -> None:
    """Does what it is asked for and prints the answer as one line."""
    verbs: dict[str, Callable[..., Any]] = {
        "listed": listed,
        "plan": plan,
        "drain": drain,
        "lend": lend,
        "end": end,
        "hold": hold,
        "resume": resume,
        "resume_of_slurm": resume_of_slurm,
        "remedies": remedies,
    }
    try:
        answer = verbs[verb](**arguments)
    except UnknownError as problem:
        answer = {"unknown": problem.args}
    except UnsavedError as problem:
        answer = {"unsaved": str(problem)}
    except (SilentError, AwayError, OSError, ValueError) as problem:
        answer = {"trouble": str(problem)}
    tell(answer)
