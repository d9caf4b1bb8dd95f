"""What deploy asks hosts about Slurm while it upgrades it: packages and daemons, nodes, jobs.

Sent as text over ssh and run as root, with the standard library of Python 3.9 alone.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

from deploy.run.host_commands import runner, tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_PACKAGES = ("slurm-client", "slurmctld", "slurmdbd", "slurmd", "sackd", "slurmrestd")
_BUILT = {f"slurm-smd-{name.removeprefix('slurm-')}": name for name in _PACKAGES}
"""What SchedMD's packaging calls them."""
_DAEMONS = ("slurmdbd", "slurmctld", "slurmd", "sackd", "slurmrestd")
_NO_ROOM = 15
_WITNESS_SECONDS = 40
_MEMORY = "--mem=50M"
NAME = "deploy-upgrade"
PLUGIN = Path("/var/lib/deploy/slurm-upgrade/slurm-pyxis.deb")
"""The plugin for containers that comes with the wanted release, until it is installed."""
_run = runner(20)
_run_long = runner(50)
"""For the whole queue of a busy cluster, task by task."""


def look() -> dict[str, Any]:
    """The versions of Slurm's packages, what an upgrade left half done, and the daemons: how they are.

    Packages are called as the distribution does, whoever made them; ``built``: SchedMD's packaging.
    """
    shape = "--showformat=${Package} ${db:Status-Abbrev} ${Version}\n"
    packages, broken, is_built = {}, [], False
    for line in _run("dpkg-query", "--show", shape, *_PACKAGES, *_BUILT)[0].splitlines():
        found, status, *version = line.split()
        name = _BUILT.get(found, found)
        if name not in _PACKAGES or not version:
            continue
        if status == "ii":
            packages[name] = version[0]
            is_built |= found in _BUILT
        elif status[1:2] not in {"n", "c"}:
            broken.append(name)
    return {
        "packages": packages,
        "broken": broken,
        "built": is_built,
        "plugin_waits": PLUGIN.exists(),
        "daemons": {name: _daemon(name) for name in packages if name in _DAEMONS},
    }


def _daemon(unit: str) -> str:
    """``active``, ``stale`` for one that runs a program that was replaced since, or systemd's word."""
    said, _ = _run("systemctl", "show", unit, "--property=ActiveState,MainPID")
    found = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
    try:
        program = str(Path(f"/proc/{int(found.get('MainPID', '0')) or 'none'}/exe").readlink())
    except OSError:
        return found.get("ActiveState", "unknown")
    return "stale" if program.endswith(" (deleted)") else found.get("ActiveState", "unknown")


def gate() -> dict[str, Any]:
    """Whether slurmctld and slurmdbd answer, and by node its states, reason and version."""
    ping, _ = _run("scontrol", "ping")
    accounts, is_answered = _run("sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=cluster")
    nodes = {}
    for line in _run("scontrol", "--oneliner", "show", "node")[0].splitlines():
        name, state = re.match(r"NodeName=(\S+)", line), re.search(r" State=(\S+)", line)
        version, reason = re.search(r" Version=(\S+)", line), re.search(r" Reason=(.*?) \[", line)
        if name and state:
            nodes[name.group(1)] = {
                "states": [word for word in re.split(r"[+*~#$!%@^-]", state.group(1)) if word],
                "answers": "*" not in state.group(1),
                "version": version.group(1) if version else "",
                "reason": reason.group(1) if reason else "",
            }
    return {
        "slurmctld": "" if " is UP" in ping else ping.strip()[-200:] or "no answer",
        "slurmdbd": "" if is_answered and accounts.strip() else accounts.strip()[-200:] or "no answer",
        "nodes": nodes,
    }


def power() -> dict[str, list[str]]:
    """By node the words of its state; empty where slurmctld does not answer."""
    said, succeeded = _run("scontrol", "--oneliner", "--all", "show", "node")
    found = re.findall(r"^NodeName=(\S+).*? State=(\S+)", said, re.MULTILINE) if succeeded else ()
    return {name: [word for word in re.split(r"[^A-Z_]+", state) if word] for name, state in found}


def timeout() -> dict[str, int | None]:
    """After how many ``seconds`` without an answer Slurm sets a node DOWN; 0 is never, None is unknown."""
    found = re.search(r"^SlurmdTimeout\s*=\s*(\d+)", _run("scontrol", "show", "config")[0], re.MULTILINE)
    return {"seconds": int(found.group(1)) if found else None}


def jobs(but: str) -> dict[str, Any]:
    """The jobs that wait or run, arrays one by one: state and how often each was started again.

    Not those of the user ``but``. ``trouble`` instead of them where Slurm does not say.
    """
    words = "JobArrayID:60,UserName:60,State:20,RestartCnt:10"
    said, succeeded = _run_long("squeue", "--noheader", "--all", "--array", "--Format", words)
    if not succeeded:
        return {"trouble": said.strip()[-200:] or "squeue does not come to its end"}
    rows = [line.split() for line in said.splitlines()]
    return {
        "jobs": {
            row[0]: [row[2], int(row[3])]
            for row in rows
            if len(row) == words.count(",") + 1 and row[1] != but
        }
    }


def ended(names: list[str]) -> dict[str, list[str]]:
    """The rows that accounting has of jobs: by id the states of each; no ids where it does not answer."""
    found: dict[str, list[str]] = {name: [] for name in names}
    of_arrays: dict[str, list[tuple[str, str]]] = {}
    # Tasks of an array that never began have one row together, which the id of one of them does not find.
    jobs = sorted({name.partition("_")[0] for name in names})
    for start in range(0, len(jobs), 200):
        chosen = ",".join(jobs[start : start + 200])
        words = (
            "--allocations",
            "--duplicates",
            "--noheader",
            "--parsable2",
            "--format=JobID,State",
            "--jobs",
            chosen,
        )
        said, succeeded = _run("sacct", *words)
        if not succeeded:
            return {}
        for line in said.splitlines():
            name, _, state = line.partition("|")
            job, _, tasks = name.partition("_[")
            if tasks:
                of_arrays.setdefault(job, []).append((tasks, state.split()[0]))
            elif name in found:
                found[name].append(state.split()[0])
    for name in names:
        job, _, task = name.partition("_")
        if task and not found[name]:
            found[name] += [state for tasks, state in of_arrays.get(job, ()) if _has(tasks, task)]
    return found


def _has(tasks: str, task: str) -> bool:
    """Whether a list has a task, as ``1-3,9%2`` has four; a long one ends by an ellipsis, and may."""
    ranges = re.findall(r"(\d+)(?:-(\d+)(?::(\d+))?)?", tasks.partition("%")[0])
    return "..." in tasks or any(
        int(task) in range(int(first), int(last or first) + 1, int(step or 1)) for first, last, step in ranges
    )


def hold(user: str, nodes: list[str]) -> dict[str, str]:
    """By node the id of a long job of the user's, where there was room for it at once."""
    given = {node: _submit(user, node, "sleep 590") for node in nodes}
    deadline = time.monotonic() + _NO_ROOM
    waiting = {node: job for node, job in given.items() if job}
    running: dict[str, str] = {}
    while waiting and time.monotonic() < deadline:
        states = _states(list(waiting.values()))
        for node, job in list(waiting.items()):
            if states.get(job) == "RUNNING":
                running[node] = waiting.pop(node)
        time.sleep(0.5)
    for job in waiting.values():
        _run("scancel", "--quiet", job)
    return running


def held(jobs: dict[str, str]) -> dict[str, str]:
    """What became of long jobs, by node; those that run on are cancelled."""
    states = _states(list(jobs.values()))
    found = {node: states.get(job, "gone") for node, job in jobs.items()}
    for job in jobs.values():
        _run("scancel", "--quiet", job)
    return found


def witness(user: str, nodes: list[str]) -> dict[str, str]:
    """By node what became of a short job there: ``COMPLETED``, ``no room``, or what went wrong.

    One that accounting has no row of has not ended as it should.
    """
    given = {node: _submit(user, node, "true") for node in nodes}
    found = {node: "it was not taken" for node, job in given.items() if not job}
    deadline = time.monotonic() + _WITNESS_SECONDS
    waiting = {node: job for node, job in given.items() if job}
    while waiting and time.monotonic() < deadline:
        rows = ended(list(waiting.values()))
        for node, job in list(waiting.items()):
            state = (rows.get(job) or [""])[-1]
            if state not in {"", "PENDING", "RUNNING", "REQUEUED"}:
                found[node] = state
                del waiting[node]
        time.sleep(0.5)
    states = _states(list(waiting.values()))
    for node, job in waiting.items():
        found[node] = (
            "no room"
            if states.get(job) == "PENDING"
            else f"{states.get(job, 'gone')}, without an end in accounting"
        )
        _run("scancel", "--quiet", job)
    return found


def leave(user: str) -> dict[str, list[str]]:
    """Cancels what is left of the witnesses; answers which were still waiting or running."""
    said, _ = _run("squeue", "--noheader", "--all", f"--user={user}", f"--name={NAME}", "--format=%i")
    _run("scancel", "--quiet", f"--user={user}", f"--name={NAME}")
    return {"waiting": said.split()}


def _submit(user: str, node: str, script: str) -> str:
    given = (
        f"--partition={user}",
        f"--account={user}",
        f"--job-name={NAME}",
        _MEMORY,
        "--time=10",
        "--chdir=/tmp",
    )
    words = ("sbatch", "--parsable", "--output=/dev/null", f"--nodelist={node}", *given, f"--wrap={script}")
    said, succeeded = _run("runuser", f"--user={user}", "--", *words)
    return said.strip().splitlines()[-1].split(";")[0] if succeeded and said.strip() else ""


def _states(jobs: list[str]) -> dict[str, str]:
    if not jobs:
        return {}
    said, _ = _run(
        "squeue", "--noheader", "--all", "--states=all", "--format=%i %T", f"--jobs={','.join(jobs)}"
    )
    return dict(re.findall(r"^\s*(\S+) ([A-Z_]+)\s*$", said, re.MULTILINE))


def main(verb: str, arguments: dict[str, Any]) -> None:
    """Does what it is asked for and prints the answer as one line."""
    verbs: dict[str, Callable[..., Any]] = {
        "look": look,
        "gate": gate,
        "power": power,
        "timeout": timeout,
        "jobs": jobs,
        "ended": ended,
        "hold": hold,
        "held": held,
        "witness": witness,
        "leave": leave,
    }
    tell(verbs[verb](**arguments))
