"""What makes a node unfit for jobs, compared with what was declared of it.

What a whole cluster shares and may lose at once, such as time servers, is no fault: all nodes would drain.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from node_hardware import read_hardware, shortfalls
from systemd_units import died, parse_units, runs

_PROC, _SYS = Path("/proc"), Path("/sys")
_SECONDS_TO_ANSWER = 10.0
_SECONDS_FOR_A_PROGRAM = 5.0
_SECONDS_FOR_GPUS = 20.0
_SECONDS_TO_DIE = 0.5
_MIB = 1 << 20
# The order of the fields in `chronyc -c tracking`.
_SYSTEM_TIME, _LEAP_STATUS = 4, 13
_NOT_TOLD = frozenset({"[N/A]", "N/A", "[Not Supported]"})


class Fault(NamedTuple):
    """What is wrong: of which ``kind``, with what (a path, a service, a GPU), and in ``words``.

    What can be done about it goes by the kind: ``mount``, ``silent``, ``read-only``, ``room``, ``path``,
    ``service``, ``clock``, ``hardware``, ``gpu``, ``infiniband``, ``program``.
    """

    kind: str
    subject: str
    words: str

    def __str__(self) -> str:
        return self.words


class Checks:
    """All checks of one node, which have ``seconds`` together.

    ``remarks`` are mistakes in the settings, and what else is no fault of the node. ``late`` are the kinds of
    faults that the last look had no time for.
    """

    def __init__(self, settings: Mapping[str, Any], seconds: float = math.inf) -> None:
        self._settings = settings
        self._until = time.monotonic() + seconds
        self.remarks: list[str] = []
        self.late: set[str] = set()

    def faults(self) -> list[Fault]:
        """What is wrong; the words are for the reason of a drain."""
        self.late = set()
        return [
            *self._file_system_faults(),
            *self._service_faults(),
            *self._clock_faults(),
            *self._hardware_faults(),
            *self._gpu_faults(),
            *infiniband_faults(self._settings["infiniband"], _SYS),
            *self._program_faults(),
        ]

    def _has_time(self, seconds: float, what: str, *kinds: str) -> bool:
        """Whether a check can take as long as it may; one that is cut short would say nothing."""
        if time.monotonic() + seconds <= self._until:
            return True
        self._note_late(what, *kinds)
        return False

    def _note_late(self, what: str, *kinds: str) -> None:
        self.late |= {*kinds}
        self.remarks.append(f"no time was left for {what}")

    def _seconds_left(self) -> float:
        """How long a program may still take, so that it can be killed thereafter."""
        return self._until - time.monotonic() - _SECONDS_TO_DIE

    def _file_system_faults(self) -> Iterator[Fault]:
        mounts, disks = self._settings["mounts"], self._settings["disks"]
        kinds = ("silent", "mount", "read-only", "path", "room")
        if not self._has_time(_SECONDS_TO_ANSWER, "file systems", *kinds):
            return
        hung = unanswered([entry["path"] for entry in (*mounts, *disks)])
        table = parse_mounts((_PROC / "self/mounts").read_text(encoding="utf-8"))
        yield from (Fault("silent", path, f"{path} does not answer") for path in dict.fromkeys(hung))
        yield from mount_faults([entry for entry in mounts if entry["path"] not in hung], table)
        yield from disk_faults([entry for entry in disks if entry["path"] not in hung])

    def _program_faults(self) -> Iterator[Fault]:
        for program in self._settings["programs"]:
            seconds = float(program.get("seconds", _SECONDS_FOR_A_PROGRAM))
            limit = min(seconds, self._seconds_left())
            found = [*program_faults([{**program, "seconds": limit}])] if limit > 0 else []
            is_cut_short = limit < seconds and bool(found) and self._seconds_left() <= 0
            if limit <= 0 or is_cut_short:
                self._note_late(program["name"], "program")
            else:
                yield from found

    def _service_faults(self) -> Iterator[Fault]:
        names = self._settings["services"]
        if not self._has_time(_SECONDS_TO_ANSWER, "services", "service"):
            return iter(())
        command = ["systemctl", "show", "--property=ActiveState,SubState,Job", "--", *names]
        said = output(command) if names else ""
        if names and not said:
            # A machine under load: not to know is not to be ill.
            self.remarks.append("systemd did not answer in time")
        return service_faults(names, said) if said else iter(())

    def _clock_faults(self) -> Iterator[Fault]:
        limit = float(self._settings["clock_seconds"])
        if not limit or not self._has_time(_SECONDS_TO_ANSWER, "the clock", "clock"):
            return iter(())
        return clock_faults(output(["chronyc", "-c", "tracking"]), limit)

    def _hardware_faults(self) -> list[Fault]:
        if not self._has_time(_SECONDS_TO_ANSWER, "the hardware", "hardware"):
            return []
        found, contract = read_hardware(output), self._settings["contract"]
        if not found["cpus"]:
            self.remarks.append("lscpu did not answer in time")
            contract = {name: value for name, value in contract.items() if name != "cpus"}
        return [Fault("hardware", "", words) for words in shortfalls(contract, found)]

    def _gpu_faults(self) -> Iterator[Fault]:
        """What the driver says; without a driver the device files were counted already."""
        count = sum(int(gpu["count"]) for gpu in self._settings["contract"].get("gpus") or [])
        if not count or not (_PROC / "driver/nvidia/version").exists():
            return
        if not self._has_time(_SECONDS_FOR_GPUS, "nvidia-smi", "gpu", "hardware"):
            return
        fields = list(self._settings["gpu_fields"])
        code, said = gpu_answers(fields)
        while unknown := [field for field in fields if f'Field "{field["field"]}" is not a valid' in said]:
            # It answers nothing at all then, and the other fields count all the same.
            if not unknown[0].get("optional"):
                self.remarks.append(f"node_health_gpu_fields: this nvidia-smi has no {unknown[0]['field']}")
            fields.remove(unknown[0])
            code, said = gpu_answers(fields)
        if "not a valid field" in said:
            self.remarks.append(f"node_health_gpu_fields: nvidia-smi says: {_last_line(said)}")
        elif code != 0:
            yield Fault("gpu", "", f"nvidia-smi: {_last_line(said)}")
        else:
            yield from gpu_faults(said, fields, count)


def parse_mounts(text: str) -> dict[str, tuple[str, frozenset[str]]]:
    """/proc/self/mounts: mount point to type and options; the last one is the one that is seen."""
    table = {}
    for line in text.splitlines():
        _, point, kind, options = line.split()[:4]
        # Spaces and the like are written as octal numbers.
        plain = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), point)
        table[plain] = (kind, frozenset(options.split(",")))
    return table


def mount_faults(
    wanted: Sequence[Mapping[str, Any]], table: Mapping[str, tuple[str, frozenset[str]]]
) -> Iterator[Fault]:
    """Mounts that are missing, of another type, or read-only where jobs write."""
    for mount in wanted:
        kind, options = table.get(mount["path"], ("", frozenset()))
        if not kind or kind == "autofs":
            yield Fault("mount", mount["path"], f"{mount['path']} is not mounted")
        elif mount.get("type") and not _same_type(kind, mount["type"]):
            yield Fault("mount", mount["path"], f"{mount['path']} is {kind}, not {mount['type']}")
        elif mount.get("writable", True) and "ro" in options:
            yield Fault("read-only", mount["path"], f"{mount['path']} is read-only")


def _same_type(found: str, wanted: str) -> bool:
    return found == wanted or {found, wanted} <= {"nfs", "nfs4"}


def disk_faults(wanted: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    """File systems with too little room, or that the kernel made read-only after an error."""
    for disk in wanted:
        path = disk["path"]
        try:
            found = os.statvfs(path)
        except OSError as problem:
            yield Fault("path", path, f"{path}: {problem.strerror}")
            continue
        free = found.f_bavail * found.f_frsize // _MIB
        if found.f_flag & os.ST_RDONLY:
            yield Fault("read-only", path, f"{path} is read-only")
        if free < int(disk["free_mb"]):
            yield Fault("room", path, f"{path} is full: less than {disk['free_mb']} MiB free")
        if found.f_files and found.f_favail == 0:
            yield Fault("room", path, f"{path} has no free inodes")


def service_faults(names: Sequence[str], text: str) -> Iterator[Fault]:
    """`systemctl show` with a block per name: services that neither run nor are about to."""
    for name, properties in zip(names, parse_units(text)):  # noqa: B905 - strict= came with Python 3.10
        if died(properties):
            yield Fault("service", name, f"{name} is failed, and started again and again")
        elif not runs(properties) and properties.get("Job", "0") in {"", "0"}:
            yield Fault("service", name, f"{name} is {properties.get('ActiveState', 'unknown')}")


def clock_faults(tracking: str, limit: float) -> Iterator[Fault]:
    """`chronyc -c tracking`: a clock that is known to be wrong; without time servers that is not known."""
    fields = tracking.strip().split(",")
    if len(fields) <= _LEAP_STATUS or fields[_LEAP_STATUS] == "Not synchronised":
        return
    off = abs(float(fields[_SYSTEM_TIME]))
    if off > limit:
        yield Fault("clock", "", f"the clock is more than {limit:g} s off")


def gpu_answers(fields: Sequence[Mapping[str, Any]]) -> tuple[int, str]:
    """Exit code and what nvidia-smi says: for every GPU its index, then the values of the fields."""
    query = ",".join(["index", *(field["field"] for field in fields)])
    return answer(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"], _SECONDS_FOR_GPUS)


def gpu_faults(text: str, fields: Sequence[Mapping[str, Any]], count: int) -> Iterator[Fault]:
    """A line of nvidia-smi per GPU: its index, then the values of the fields."""
    rows = [[value.strip() for value in line.split(",")] for line in text.splitlines() if line.strip()]
    if len(rows) < count:
        yield Fault("hardware", "", f"gpus: the contract says {count}, nvidia-smi shows {len(rows)}")
    for index, *values in rows:
        for field, value in zip(fields, values):  # noqa: B905
            if value not in _NOT_TOLD and value not in field["healthy"]:
                yield Fault("gpu", index, f"GPU {index}: {field['field']} is {value}")


def infiniband_faults(wanted: Sequence[Mapping[str, Any]], sys: Path) -> Iterator[Fault]:
    """Ports that are missing, not active, or slower than they should be."""
    for entry in wanted:
        name = f"{entry['device']} port {entry.get('port', 1)}"
        port = sys / "class/infiniband" / entry["device"] / "ports" / str(entry.get("port", 1))
        try:
            state, rate = ((port / file).read_text(encoding="utf-8").strip() for file in ("state", "rate"))
        except OSError:
            yield Fault("infiniband", entry["device"], f"{name} is missing")
            continue
        if not state.endswith("ACTIVE"):
            yield Fault("infiniband", entry["device"], f"{name} is {state.rpartition(' ')[2]}")
        elif float(rate.split()[0]) < float(entry.get("gbits", 0)):
            slow = f"{name} runs at {rate.split()[0]} Gb/s, not {entry['gbits']}"
            yield Fault("infiniband", entry["device"], slow)


def program_faults(programs: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    """The site's own checks: a program that fails says why on its last line."""
    for program in programs:
        code, said = answer(program["command"], float(program.get("seconds", _SECONDS_FOR_A_PROGRAM)))
        if code != 0:
            words = f"{program['name']}: {_last_line(said) or f'exit code {code}'}"
            yield Fault("program", program["name"], words)


def unanswered(paths: Sequence[str]) -> list[str]:
    """The paths on file systems that hang, as an NFS mount without its server does.

    Whoever asks such a file system hangs with it and cannot be killed, so that others ask, all at once.
    """
    asking = {
        path: subprocess.Popen(
            ["stat", "--file-system", "--", path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for path in dict.fromkeys(paths)
    }
    deadline = time.monotonic() + _SECONDS_TO_ANSWER
    while any(process.poll() is None for process in asking.values()) and time.monotonic() < deadline:
        time.sleep(0.005)
    hung = [path for path, process in asking.items() if process.poll() is None]
    for path in hung:
        _abandon(asking[path])
    return hung


def output(command: Sequence[str]) -> str:
    """Standard output of a command; empty when it cannot be had."""
    code, said = answer(command, _SECONDS_TO_ANSWER, errors=False)
    return said if code == 0 else ""


def answer(command: Sequence[str], seconds: float, *, errors: bool = True) -> tuple[int, str]:
    """Exit code and what a command said; it may not take longer than that."""
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if errors else subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as problem:
        return 127, problem.strerror or str(problem)
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _abandon(process)
        return 124, f"no answer within {seconds:g} s"
    return process.returncode, said


def _abandon(process: subprocess.Popen[Any]) -> None:
    """Kills a process without waiting for long: one that hangs in the kernel does not die."""
    process.kill()
    if process.stdout:
        process.stdout.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_SECONDS_TO_DIE)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
