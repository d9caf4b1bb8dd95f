"""Lets budgets begin anew when their period does, and jobs go on in another QOS when a budget is used up.

``keep_budgets.py DIRECTORY``: where it keeps which period was begun, and which jobs it moved. Controllers
share it, and one of them works at a time.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from budgets import Terms, UnansweredError, Use, all_terms, all_uses, ask, bounds

State = dict[str, dict[str, Any]]

_STATE = "deploy_budgets.json"
_LOCK = "deploy_budgets.lock"
_PATIENCE = 20


def read(directory: Path) -> State:
    """What was kept; nothing before the first time."""
    new: State = {"periods": {}, "lowered": {}}
    try:
        return {**new, **json.loads((directory / _STATE).read_text(encoding="utf-8"))}
    except FileNotFoundError:
        return new


def write(directory: Path, state: State) -> None:
    """Keeps it, whole or not at all."""
    new = directory / f"{_STATE}.new"
    with new.open("w", encoding="utf-8") as file:
        json.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(directory / _STATE)
    folder = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def begin(name: str, use: Use) -> None:
    """Sets a budget's use to nothing, and sees that slurmctld did it: what it misses is lost."""
    before = sum(use.used.values())
    if not before:
        return
    ask("sacctmgr", "--immediate", "modify", "qos", "where", f"name={name}", "set", "RawUsage=0")
    for _ in range(_PATIENCE):
        if sum(all_uses([name])[name].used.values()) < before:
            say(f"budget of {name}: a new period begins")
            return
        time.sleep(1)
    raise UnansweredError("slurmctld", f"it did not set the use of the QOS {name} to 0")


def begin_periods(granted: Mapping[str, Terms], used: Mapping[str, Use], state: State, now: datetime) -> None:
    """Every budget whose period ended since it was looked at last. A new one is only noted."""
    for name, terms in granted.items():
        start, _ = bounds(terms.period, now)
        today = start.date().isoformat() if start else ""
        known = state["periods"].get(name, "")
        if known and today > known:
            begin(name, used[name])
        state["periods"][name] = today
    state["periods"] = {name: kept for name, kept in state["periods"].items() if name in granted}


def is_used_up(terms: Terms, use: Use) -> bool:
    """Whether one of its resources is."""
    return any(use.used.get(resource, 0) >= hours for resource, hours in terms.hours.items())


def pending(qos: str) -> list[str]:
    """The jobs of a QOS that wait. Raises UnansweredError."""
    return ask("squeue", "--noheader", "--states=PENDING", f"--qos={qos}", "--format=%A").split()


def move(jobs: Iterable[str], qos: str) -> list[str]:
    """Moves jobs that wait into a QOS; returns those that wait there then. Raises UnansweredError.

    scontrol fails, too, where one task of an array runs and all that wait were moved.
    """
    wanted = list(dict.fromkeys(jobs))
    for job in wanted:
        try:
            ask("scontrol", "update", f"JobId={job}", f"QOS={qos}")
        except UnansweredError as problem:
            say(f"job {job}: {problem}")
    there = pending(qos) if wanted else []
    return [job for job in wanted if job in there]


def lower(granted: Mapping[str, Terms], used: Mapping[str, Use], state: State) -> None:
    """Jobs of budgets that are used up wait in the lower QOS; where hours are left again they come back."""
    for name, terms in granted.items():
        if not terms.lower_qos:
            continue
        were = state["lowered"].get(name, [])
        if is_used_up(terms, used[name]):
            jobs = pending(name)
            # Noted first: what happens after a command, nobody may come to know.
            state["lowered"][name] = list(dict.fromkeys([*were, *jobs]))
            now = move(jobs, terms.lower_qos)
            there = pending(terms.lower_qos) if were else now
            state["lowered"][name] = [job for job in dict.fromkeys([*were, *now]) if job in there]
            if now:
                say(f"budget of {name} is used up: {len(now)} jobs go on in {terms.lower_qos}")
        elif were:
            there = pending(terms.lower_qos)
            back = move([job for job in were if job in there], name)
            there = pending(terms.lower_qos)
            state["lowered"][name] = [job for job in were if job in there]
            say(f"budget of {name}: {len(back)} jobs are paid by it again")
    lowering = {name for name, terms in granted.items() if terms.lower_qos}
    state["lowered"] = {name: jobs for name, jobs in state["lowered"].items() if name in lowering}


def uncounted(granted: Mapping[str, Terms], used: Mapping[str, Use]) -> dict[str, list[str]]:
    """By budget the resources that slurmctld does not count: they would never be used up."""
    missing = {name: sorted(terms.hours.keys() - used[name].used.keys()) for name, terms in granted.items()}
    return {name: resources for name, resources in missing.items() if resources}


def say(text: str) -> None:
    """For the journal."""
    sys.stdout.write(f"{text}\n")


def main(directory: Path) -> int:
    """One look at all budgets."""
    with (directory / _LOCK).open("a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = read(directory)
        try:
            terms = all_terms()
            used = all_uses(sorted(terms))
            # One that the database has and slurmctld does not know yet has its turn the next time.
            granted = {name: said for name, said in terms.items() if name in used}
            begin_periods(granted, used, state, datetime.now().astimezone())
            lower(granted, all_uses(sorted(granted)), state)
        except UnansweredError as problem:
            sys.stderr.write(f"{problem}\n")
            return 1
        finally:
            write(directory, state)
    unknown = uncounted(granted, used)
    for name, resources in unknown.items():
        sys.stderr.write(
            f"budget of {name}: slurmctld does not count {', '.join(resources)}, so that it never ends: "
            "correct its hours (sacctmgr show tres)\n"
        )
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
