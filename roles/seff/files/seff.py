#!/usr/bin/python3
"""What jobs used of what they had, by Slurm's accounting: processors, memory, time.

Python's standard library alone. For one job it prints the lines of Slurm's own contribution of this name, for
several, or an array, a table.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

_FIELDS = (
    "JobID",
    "Cluster",
    "User",
    "Group",
    "State",
    "ExitCode",
    "NNodes",
    "AllocCPUS",
    "TotalCPU",
    "ElapsedRaw",
    "TimelimitRaw",
    "AllocTRES",
    "NTasks",
    "TRESUsageInTot",
    "JobIDRaw",
    "JobName",
)
_RUNNING = ("RUNNING", "SUSPENDED", "COMPLETING")
_WAITING = ("PENDING", "REQUEUED", "CONFIGURING")
_SHORT = 60
"""Seconds below which Slurm, which measures memory every 30 of them, may miss the most that a job used."""
_SECONDS_OF_NODES = 20
_UNITS = {"K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_STEP = re.compile(r"(?P<job>[0-9_\[\]%,+-]+?)(?:\.(?P<step>.+))?")
_JOB = re.compile(r"[0-9]+(_[0-9]+)?(\+[0-9]+)?")


def seconds(text: str) -> float:
    """A time as sacct writes it: ``days-hours:minutes:seconds.thousandths``, short ones without hours."""
    days, _, rest = text.rpartition("-")
    total = 0.0
    for part in rest.split(":"):
        total = total * 60 + float(part or 0)
    return total + 86400 * int(days or 0)


def size(text: str) -> int:
    """Bytes, as Slurm counts them: 1K is 1024."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "")
    return int(float(number or 0) * 1024 ** _UNITS.get(unit, 0))


def resources(text: str) -> dict[str, str]:
    """``cpu=2,mem=1G`` by name."""
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def clock(number: float) -> str:
    """Seconds as ``days-hours:minutes:seconds``."""
    minutes, rest = divmod(round(number), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return (f"{days}-" if days else "") + f"{hours:02}:{minutes:02}:{rest:02}"


def amount(number: float) -> str:
    """Bytes in the unit that fits, as 1.20 GB."""
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if number < 1024 or unit == "TB":  # noqa: PLR2004
            break
        number /= 1024
    return f"{number:.2f} {unit}"


def share(part: float, whole: float) -> float | None:
    """Percent, None of nothing."""
    return 100 * part / whole if whole else None


def jobs(text: str) -> list[dict[str, Any]]:
    """Of what sacct printed each job with what its steps used."""
    found: dict[str, dict[str, Any]] = {}
    for line in text.splitlines():
        said = dict(zip(_FIELDS, line.split("|", len(_FIELDS) - 1)))  # noqa: B905 - Python 3.9
        name = _STEP.fullmatch(said["JobID"])
        if not name:
            continue
        if name["step"] is None:
            found[name["job"]] = _job(said)
        elif name["job"] in found:
            # Steps need not run at once: what they used most is known of each alone.
            used = size(resources(said["TRESUsageInTot"]).get("mem", "0"))
            found[name["job"]]["memory_used"] = max(found[name["job"]]["memory_used"], used)
    return list(found.values())


def _job(said: dict[str, str]) -> dict[str, Any]:
    has = resources(said["AllocTRES"])
    limit = said["TimelimitRaw"]
    return {
        "job": said["JobID"],
        "raw_id": said["JobIDRaw"],
        "name": said["JobName"],
        "cluster": said["Cluster"],
        "user": said["User"],
        "group": said["Group"],
        "state": said["State"].split(" ", maxsplit=1)[0],
        "exit_code": int(said["ExitCode"].partition(":")[0] or 0),
        "nodes": int(said["NNodes"] or 0),
        "cpus": int(said["AllocCPUS"] or 0),
        "cpu_seconds": seconds(said["TotalCPU"]),
        "elapsed_seconds": int(said["ElapsedRaw"] or 0),
        "limit_seconds": int(limit) * 60 if limit.isdigit() else None,
        "memory_used": 0,
        "memory": size(has.get("mem", "0")),
        "gpus": int(has.get("gres/gpu", 0)),
        "is_measured_now": False,
    }


def add_running(found: Iterable[dict[str, Any]], text: str) -> None:
    """Adds what sstat printed of steps that run, of which sacct knows nothing before their end."""
    by_number = {job["raw_id"]: job for job in found}
    for line in text.splitlines():
        step, _, used = line.partition("|")
        job = by_number.get(step.partition(".")[0])
        if job:
            now = resources(used)
            job["cpu_seconds"] += seconds(now.get("cpu", "0"))
            job["memory_used"] = max(job["memory_used"], size(now.get("mem", "0")))
            job["is_measured_now"] = True


def efficiency(job: dict[str, Any]) -> dict[str, float | None]:
    """Percent of processors, memory and time limit that were used."""
    return {
        "cpu": share(job["cpu_seconds"], job["cpus"] * job["elapsed_seconds"]),
        "memory": share(job["memory_used"], job["memory"]),
        "time": share(job["elapsed_seconds"], job["limit_seconds"] or 0),
    }


def of_one(job: dict[str, Any]) -> Iterable[str]:
    """The lines for one job."""
    used, core_seconds = efficiency(job), job["cpus"] * job["elapsed_seconds"]
    yield f"Job ID: {job['job']}"
    yield f"Cluster: {job['cluster']}"
    yield f"User/Group: {job['user']}/{job['group']}"
    yield f"State: {job['state']} (exit code {job['exit_code']})"
    if job["state"] in _WAITING:
        yield "Efficiency not available for jobs in the PENDING state."
        return
    yield f"Nodes: {job['nodes']}"
    yield f"Cores per node: {job['cpus'] // max(1, job['nodes'])}"
    if job["gpus"]:
        yield f"GPUs: {job['gpus']}"
    yield f"CPU Utilized: {clock(job['cpu_seconds'])}"
    yield f"CPU Efficiency: {used['cpu'] or 0:.2f}% of {clock(core_seconds)} core-walltime"
    yield f"Job Wall-clock time: {clock(job['elapsed_seconds'])}"
    if used["time"] is not None:
        yield f"Time Efficiency: {used['time']:.2f}% of {clock(job['limit_seconds'])} time limit"
    yield f"Memory Utilized: {amount(job['memory_used'])}"
    yield f"Memory Efficiency: {used['memory'] or 0:.2f}% of {amount(job['memory'])}"
    if job["is_measured_now"]:
        yield "The job runs still: this is what it used until now."
    elif job["state"] in _RUNNING:
        yield "WARNING: the job runs still: of its processors and memory only steps that ended are counted."
    elif job["elapsed_seconds"] < _SHORT:
        yield "WARNING: Slurm measures memory every 30 seconds (--acctg-freq): it may have used more."


def of_many(found: Sequence[dict[str, Any]]) -> Iterable[str]:
    """A table, one line for each job."""
    rows = [("JobID", "State", "Elapsed", "TimeEff", "CPUEff", "MemEff", "Name")]
    for job in found:
        used = efficiency(job)
        percents = ("---" if used[key] is None else f"{used[key]:.1f}%" for key in ("time", "cpu", "memory"))
        rows.append((job["job"], job["state"], clock(job["elapsed_seconds"]), *percents, job["name"]))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip()  # noqa: B905 - Python 3.9


def asked(names: Sequence[str]) -> str:
    """What sacct says of these jobs; ends the program where it says nothing."""
    command = ["sacct", "--noheader", "--parsable2", f"--format={','.join(_FIELDS)}"]
    try:
        done = _run([*command, f"--jobs={','.join(names)}"])
    except OSError as problem:
        sys.exit(f"seff: sacct does not start: {problem.strerror}")
    if done.returncode != 0:
        sys.exit(f"seff: sacct: {done.stderr.strip()}")
    return done.stdout


def asked_now(found: Iterable[dict[str, Any]]) -> str:
    """What sstat says of those that run; nothing where their nodes do not answer."""
    names = [job["raw_id"] for job in found if job["state"] in _RUNNING]
    if not names:
        return ""
    command = ["sstat", "--noheader", "--parsable2", "--allsteps", "--format=JobID,TRESUsageInTot"]
    try:
        return _run([*command, f"--jobs={','.join(names)}"], _SECONDS_OF_NODES).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _run(command: list[str], limit: float | None = None) -> subprocess.CompletedProcess[str]:
    # A user's own form of times is not for programs.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("SACCT_", "SLURM_TIME"))
    }
    return subprocess.run(
        command,
        capture_output=True, text=True, errors="replace", check=False, env=environment, timeout=limit,
    )  # fmt: skip


def _name(text: str) -> str:
    if not _JOB.fullmatch(text):
        problem = f"{text!r} is no job id; an example: 1234 or 1234_5"
        raise argparse.ArgumentTypeError(problem)
    return text


def main(words: Sequence[str] | None = None) -> int:
    """Parse, ask, print."""
    parser = argparse.ArgumentParser(prog="seff", description="What jobs used of what they had.")
    parser.add_argument(
        "jobs", metavar="JOBID", nargs="+", type=_name, help="a job, or a task of an array (1234_5)"
    )
    parser.add_argument(
        "--json", action="store_true", help="one JSON document; sizes in bytes, times in seconds"
    )
    options = parser.parse_args(words)
    found = jobs(asked(options.jobs))
    if not found:
        sys.stderr.write(f"seff: no job {', '.join(options.jobs)} that you may see\n")
        return 1
    add_running(found, asked_now(found))
    if options.json:
        lines: Iterable[str] = [
            json.dumps([{**job, "efficiency": efficiency(job)} for job in found], indent=2)
        ]
    else:
        lines = of_one(found[0]) if len(found) == 1 else of_many(found)
    sys.stdout.write("\n".join((*lines, "")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
