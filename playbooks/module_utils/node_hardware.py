"""What a machine has: CPUs, memory, NVIDIA GPUs, and whether that is less than its contract."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ansible.module_utils.nvidia_devices import gpu_types, read_devices

Hardware = dict[str, Any]

_MEMORY_FOR_JOBS = 0.98
"""Part of the memory that a discovered contract has: MemTotal moves a little from kernel to kernel."""


def read_hardware(run: Callable[[list[str]], str], *, by_name: bool = False) -> Hardware:
    """What this machine has; without ``gpus`` where that is not known. ``run`` gives a command's output.

    ``memory_mb`` is all that the kernel shows, as slurmd counts it. ``by_name``: Slurm finds GPUs itself, by
    types that are a part of their names.
    """
    hardware = parse_topology(run(["lscpu", "--parse=CPU,CORE,SOCKET"]))
    hardware["memory_mb"] = parse_memory(Path("/proc/meminfo").read_text(encoding="utf-8"))
    gpus = read_gpus(Path("/proc"), Path("/dev"), Path("/sys"), by_name=by_name)
    return hardware if gpus is None else {**hardware, "gpus": gpus}


def parse_topology(text: str) -> Hardware:
    """`lscpu --parse=CPU,CORE,SOCKET` as counts; sockets, cores and threads only where they are uniform."""
    rows = [tuple(line.split(",")) for line in text.splitlines() if line and not line.startswith("#")]
    cpus = len(rows)
    sockets = len({socket for _, _, socket in rows}) or 1
    cores = len({(core, socket) for _, core, socket in rows}) or 1
    hardware: Hardware = {"cpus": cpus}
    if cores % sockets == 0 and cpus % cores == 0:
        hardware |= {
            "sockets": sockets,
            "cores_per_socket": cores // sockets,
            "threads_per_core": cpus // cores,
        }
    return hardware


def parse_memory(meminfo: str) -> int:
    """MiB that the kernel shows, from the text of /proc/meminfo."""
    found = re.search(r"^MemTotal:\s+(\d+) kB", meminfo, re.MULTILINE)
    return int(found.group(1)) // 1024 if found else 0


def gpu_type(model: str) -> str:
    """The short type users write: `NVIDIA A100-SXM4-80GB` -> a100, `NVIDIA GeForce RTX 3090` -> rtx3090."""
    words = re.sub(r"(?i)\b(nvidia|tesla|quadro|geforce|graphics|device)\b", " ", model).split()
    if not words:
        return "gpu"
    if words[0].lower() in {"rtx", "gtx"} and len(words) > 1:
        first = words[1] if re.match(r"(?i)a\d", words[1]) else words[0] + words[1]
    else:
        first = words[0]
    return re.sub(r"[^a-z0-9]", "", first.split("-")[0].lower()) or "gpu"


def name_in_slurm(model: str) -> str:
    """What Slurm calls a GPU that it finds: the driver's name in small letters, with _ for blanks."""
    return model.lower().replace(" ", "_")


def type_by_name(model: str) -> str:
    """The short type where it is a part of Slurm's name, else as much of that as says which GPU it is."""
    name, short = name_in_slurm(model), gpu_type(model)
    longer = re.search(r"[rg]tx_(pro_)?[a-z0-9]+", name) or re.match(r"[a-z0-9_.-]+", name)
    return short if short in name or longer is None else longer.group()


def discover_hardware(run: Callable[[list[str]], str], *, by_name: bool = False) -> Hardware:
    """What a contract says of this machine: of its memory the part for jobs.

    GPUs that wait for their driver are named by their numbers on the PCI bus.
    """
    hardware = read_hardware(run, by_name=by_name)
    hardware["memory_mb"] = int(hardware["memory_mb"] * _MEMORY_FOR_JOBS)
    gpus = hardware.get("gpus") or undriven_gpus(Path("/sys"))
    return hardware if gpus is None else {**hardware, "gpus": gpus}


def disk_mb(directory: Path, statvfs: Callable[[Path], os.statvfs_result] = os.statvfs) -> int:
    """MiB of the file system that a directory is on, or will be where it is yet to be made; in whole GiB.

    All blocks, free or not, as slurmd counts what it holds against TmpDisk. Nodes that are alike stay alike.
    """
    place = next(path for path in (directory, *directory.parents) if path.exists())
    found = statvfs(place)
    return found.f_blocks * found.f_frsize // 2**30 * 1024


def undriven_gpus(sys: Path) -> list[dict[str, Any]] | None:
    """GPUs by type as the PCI bus shows them; None when one of them is not known by its number."""
    types = list(gpu_types(read_devices(sys)))
    return None if "" in types else _by_type(enumerate(types))


def read_gpus(proc: Path, dev: Path, sys: Path, *, by_name: bool = False) -> list[dict[str, Any]] | None:
    """GPUs by type as the driver lists them; device files without a driver's word count as type gpu.

    None when there are NVIDIA display controllers on the PCI bus but no driver yet: the answer is not known.
    """
    called = type_by_name if by_name else gpu_type
    gpus = [(number, called(model)) for number, model in driven_gpus(proc)]
    gpus = gpus or list(enumerate("gpu" for path in dev.glob("nvidia[0-9]*")))
    if not gpus and any(device.is_gpu for device in read_devices(sys)):
        return None
    return _by_type(gpus)


def driven_gpus(proc: Path) -> Iterator[tuple[int, str]]:
    """The number of its device file and the model of each GPU, as the driver lists them."""
    for place, path in enumerate(sorted(proc.glob("driver/nvidia/gpus/*/information"))):
        said = dict(
            re.findall(r"^(Model|Device Minor):\s*(.*?)\s*$", path.read_text(encoding="utf-8"), re.MULTILINE)
        )
        if "Model" in said:
            yield int(said.get("Device Minor", place)), said["Model"]


def _by_type(gpus: Iterable[tuple[int, str]]) -> list[dict[str, Any]]:
    """GPUs by type; with their device files where those are not one type's after the other's from 0 on."""
    numbers: dict[str, list[int]] = {}
    for number, name in sorted(gpus):
        numbers.setdefault(name, []).append(number)
    as_usual = [number for of_type in numbers.values() for number in of_type] == list(
        range(sum(map(len, numbers.values())))
    )
    return [
        {"type": name, "count": len(own)} | ({} if as_usual else {"files": _files(own)})
        for name, own in numbers.items()
    ]


def _files(numbers: list[int]) -> str:
    """Device files as Slurm writes them, of numbers in order: /dev/nvidia[0-2,4]."""
    if len(numbers) == 1:
        return f"/dev/nvidia{numbers[0]}"
    starts = [number for number in numbers if number - 1 not in numbers]
    ends = [number for number in numbers if number + 1 not in numbers]
    ranges = [f"{start}-{end}" if end > start else f"{start}" for start, end in zip(starts, ends)]  # noqa: B905
    return f"/dev/nvidia[{','.join(ranges)}]"


def shortfalls(expected: Hardware, found: Hardware) -> list[str]:
    """In which respects a machine shows less than its contract."""
    less = [
        f"{key}: the contract says {expected[key]}, the machine shows {found.get(key, 0)}"
        for key in ("cpus", "memory_mb")
        if key in expected and int(found.get(key, 0)) < int(expected[key])
    ]
    wanted = sum(
        int(gpu["count"])
        for gpu in expected.get("gpus") or []
        if re.match(r"/dev/nvidia[\d\[]", gpu.get("files") or "/dev/nvidia0")
    )
    shown = sum(int(gpu["count"]) for gpu in found.get("gpus") or [])
    if shown < wanted:
        less.append(f"gpus: the contract says {wanted}, the machine shows {shown}")
    return less
