"""The jobs that accounting has of a cluster, as shapes with a count, and what a throwaway Slurm says of them.

Sent as text and run as root on the controller, with the standard library of Python 3.9 alone.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

UNIT = "deploy-replay"
AT_WORK = "another replay is at work on this host"
_SECONDS = 1200
"""After that it is ended, whatever it does."""
_FIELDS = (
    *("JobID", "User", "Account", "Partition", "QOS", "TimelimitRaw", "ReqTRES", "NNodes", "Constraints"),
    *("Reservation", "SubmitLine"),
)
_SEPARATOR = "\x1f"
_UNITS = {"": 0, "K": -10, "M": 0, "G": 10, "T": 20, "P": 30}
_READ = "import sys; exec(compile(sys.stdin.buffer.read(int(sys.argv[1])), 'deploy', 'exec'))"
_ARRAY = re.compile(r"(\d+)_(\d+|\[([^\]%]+)(?:%\d+)?\])$")


def gather(argument: dict[str, Any]) -> dict[str, Any]:
    """The jobs of so many ``days``: shapes, each with its count; what could not be read is counted apart."""
    words = ("--allusers", "--allocations", "--noheader", "--parsable2", f"--delimiter={_SEPARATOR}")
    period = (f"--starttime=now-{argument['days']}days", "--endtime=now")
    done = subprocess.run(
        ["timeout", "300", "sacct", *words, *period, f"--format={','.join(_FIELDS)}"],
        env={**os.environ, "LC_ALL": "C.UTF-8", "SLURM_TIME_FORMAT": "standard"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        cwd="/",
        check=False,
    )
    if done.returncode:
        said = done.stderr.strip().splitlines()
        return {"trouble": said[-1] if said else f"sacct ended with {done.returncode}"}
    # A submission's line may have line breaks of its own.
    rows = [line.split(_SEPARATOR) for line in done.stdout.splitlines() if _SEPARATOR in line]
    return shapes_of(row for row in rows if len(row) == len(_FIELDS))


def shapes_of(rows: Iterable[list[str]]) -> dict[str, Any]:
    """Identical requests together; the tasks of an array are one submission, however many jobs they are."""
    arrays: dict[str, list[int]] = {}
    read = []
    unread = in_reservations = 0
    for row in rows:
        said = dict(zip(_FIELDS, row))  # noqa: B905 - Python 3.9
        number, tasks = _tasks(said["JobID"])
        shape = _shape(said)
        if shape is None:
            unread += max(1, len(tasks))
            continue
        in_reservations += max(1, len(tasks)) if said["Reservation"] else 0
        read.append((number if tasks else "", max(1, len(tasks)), shape))
        arrays.setdefault(number, []).extend(tasks)
    counts: Counter[str] = Counter()
    for array, jobs, shape in read:
        if array:
            shape = {**shape, "tasks": len(arrays[array]), "highest_task": max(arrays[array])}  # noqa: PLW2901
        counts[json.dumps(shape, sort_keys=True)] += jobs
    found = [{**json.loads(text), "jobs": count} for text, count in counts.most_common()]
    gone = {name for name in {shape["user"] for shape in found} if not _is_there(name)}
    return {
        "shapes": [shape for shape in found if shape["user"] not in gone],
        "gone": {
            name: sum(shape["jobs"] for shape in found if shape["user"] == name) for name in sorted(gone)
        },
        "unread": unread,
        "in_reservations": in_reservations,
    }


def _tasks(job: str) -> tuple[str, list[int]]:
    """The job's number, and the tasks of an array that this row is of."""
    match = _ARRAY.match(job)
    if not match:
        return job, []
    if not match[3]:
        return match[1], [int(match[2])]
    tasks: list[int] = []
    for part in match[3].split(","):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        if not (first.isdigit() and (last or first).isdigit() and (step or "1").isdigit()):
            continue
        tasks.extend(range(int(first), int(last or first) + 1, int(step or 1)))
    return match[1], tasks


def _shape(said: dict[str, str]) -> dict[str, Any] | None:
    """What a job asked for; None where accounting does not say enough."""
    asked = {name: amount for name, _, amount in (pair.partition("=") for pair in said["ReqTRES"].split(","))}
    if not (said["User"] and said["Account"] and asked.get("cpu", "").isdigit()):
        return None
    nodes = [int(count) for count in (said["NNodes"], asked.get("node", "")) if count.isdigit()]
    submitted = said["SubmitLine"].split()
    return {
        "user": said["User"],
        "account": said["Account"],
        "partition": said["Partition"],
        "qos": said["QOS"],
        "minutes": int(said["TimelimitRaw"]) if said["TimelimitRaw"].isdigit() else None,
        "nodes": max([1, *nodes]),
        "cpus": int(asked["cpu"]),
        "memory_mb": _mebibytes(asked.get("mem", "")),
        "gres": _gres(asked),
        "licenses": {
            name.partition("/")[2]: int(amount)
            for name, amount in sorted(asked.items())
            if name.startswith("license/") and amount.isdigit() and int(amount)
        },
        "constraint": said["Constraints"],
        "command": "srun" if submitted and Path(submitted[0]).name == "srun" else "sbatch",
        "tasks": 0,
        "highest_task": 0,
    }


def _mebibytes(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTP]?)", text)
    return round(float(match[1]) * 2 ** _UNITS[match[2]]) if match else 0


def _gres(asked: dict[str, str]) -> dict[str, int]:
    """What of generic resources: those of a type, and of the rest those that may be of any."""
    amounts = {
        name[len("gres/") :]: int(amount)
        for name, amount in asked.items()
        if name.startswith("gres/") and amount.isdigit()
    }
    for name in [name for name in amounts if ":" not in name]:
        amounts[name] -= sum(count for other, count in amounts.items() if other.startswith(f"{name}:"))
    return {name: count for name, count in sorted(amounts.items()) if count > 0}


def _is_there(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def judge(argument: dict[str, Any]) -> dict[str, Any]:
    """The verdicts of a Slurm in a unit of its own: network, /tmp and /mnt go away with it.

    ``inside`` is the text of the program that has the unit's Slurm.
    """
    text = _program(argument.pop("inside"), argument)
    properties = {
        "PrivateNetwork": "yes",
        "PrivateTmp": "yes",
        "ProtectSystem": "strict",
        # In memory: a database on a slow disk takes most of a minute to begin.
        "TemporaryFileSystem": "/mnt:mode=0755,size=1G",
        "KillSignal": "SIGKILL",
        "RuntimeMaxSec": str(_SECONDS),
        "Nice": "5",
    }
    command = ["systemd-run", "--pipe", "--wait", "--quiet", "--collect", "--unit", UNIT]
    command += [f"--property={key}={value}" for key, value in properties.items()]
    command += ["/usr/bin/python3", "-I", "-c", _READ, str(len(text))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stdin and run.stdout and run.stderr  # noqa: S101, PT018 - they were asked for
        _end_with_the_asker(run)
        try:
            run.stdin.write(text)
            run.stdin.flush()
        except BrokenPipeError:
            pass  # It ended already; what it says tells why.
        said = run.stdout.read().decode("utf-8", "replace").strip().splitlines()
        complaints = run.stderr.read().decode("utf-8", "replace").strip().splitlines()
    if any("already" in line and UNIT in line for line in complaints):
        return {"trouble": AT_WORK}
    try:
        answer: dict[str, Any] = json.loads(said[-1])
    except (ValueError, IndexError):
        return {
            "trouble": complaints[-1] if complaints else f"it was ended, after {_SECONDS} s at the latest"
        }
    return answer


def _program(text: str, argument: dict[str, Any]) -> bytes:
    call = f"judge(json.loads({json.dumps(argument)!r}))"
    return f"{text}\n\nimport json\nprint(json.dumps({call}))\n".encode()


def _end_with_the_asker(run: subprocess.Popen[bytes]) -> None:
    """Whoever waits for the answer keeps our standard input open; what runs in the unit goes by its own."""

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            pass
        run.kill()
        subprocess.run(["systemctl", "stop", UNIT], check=False)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
