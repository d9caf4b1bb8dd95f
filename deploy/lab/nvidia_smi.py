#!/usr/bin/python3
"""A SIMULATION of nvidia-smi for lab machines: it shows device files, there are no GPUs behind them.

Lab machines have character devices of the real major number but no driver. Opening one that the
job may use says "no such device"; one that the job was not given says "operation not permitted".
This file is copied to the machines as it is, so it stands alone.
"""

import errno
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

MODEL = "Simulated A100"
_NO_DRIVER = (errno.ENXIO, errno.ENODEV)
_NO_DEVICES = 6
_BAD_ARGUMENT = 2
_UNITS = {"utilization.gpu": " %", "utilization.memory": " %", "memory.total": " MiB", "memory.used": " MiB"}
"""What is measured of GPUs that do nothing: 0, in these units."""


def _open(path: Path) -> None:
    os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))


def usable(devices: Path, open_device: Callable[[Path], None] = _open) -> Iterator[int]:
    """Numbers of the devices that this process may open."""
    found = (re.fullmatch(r"nvidia(\d+)", entry.name) for entry in devices.iterdir())
    for index in sorted(int(match[1]) for match in found if match):
        try:
            open_device(devices / f"nvidia{index}")
        except OSError as refusal:
            if refusal.errno not in _NO_DRIVER:
                continue
        yield index


def listing(indexes: Sequence[int], host: str) -> list[str]:
    """What ``nvidia-smi -L`` prints."""
    return [f"GPU {index}: {MODEL} (UUID: GPU-simulated-{host}-{index})" for index in indexes]


def table(indexes: Sequence[int], host: str) -> list[str]:
    """What nvidia-smi prints without arguments, in small."""
    width = 62
    rule = f"+{'-' * width}+"
    return [
        rule,
        f"|{' NVIDIA-SMI simulation: no driver, no GPU, device files only':<{width}}|",
        rule,
        *(f"|{f' {index:>3}  {MODEL}  GPU-simulated-{host}-{index}':<{width}}|" for index in indexes),
        rule,
    ]


def queried(fields: Sequence[str], indexes: Sequence[int], host: str, *, has_units: bool) -> list[str]:
    """What ``nvidia-smi --query-gpu=FIELDS --format=csv,noheader`` prints."""
    lines = []
    for index in indexes:
        known = {
            "index": str(index),
            "name": MODEL,
            "gpu_name": MODEL,
            "uuid": f"GPU-simulated-{host}-{index}",
            "count": str(len(indexes)),
        }
        measured = {field: f"0{unit if has_units else ''}" for field, unit in _UNITS.items()}
        lines.append(", ".join({**known, **measured}.get(field, "[N/A]") for field in fields))
    return lines


def _format(arguments: Sequence[str]) -> tuple[list[str], set[str]] | None:
    """The fields and the words of the format of a query; None where it is none that is simulated."""
    options = dict(word.partition("=")[::2] for word in arguments)
    words = {word.strip() for word in options.get("--format", "").split(",")}
    if options.keys() != {"--query-gpu", "--format"} or not {"csv", "noheader"} <= words:
        return None
    return [field.strip() for field in options["--query-gpu"].split(",")], words


def main(arguments: Sequence[str], devices: Path = Path("/dev")) -> int:
    """Print what was asked for; the exit codes are those of the real command."""
    query = _format(arguments)
    if arguments not in ([], ["-L"], ["--list-gpus"]) and not query:
        sys.stderr.write(
            "nvidia-smi (simulation): only -L, the plain table and --query-gpu with --format=csv,noheader"
            " are simulated\n"
        )
        return _BAD_ARGUMENT
    indexes = list(usable(devices))
    if not indexes:
        sys.stdout.write("No devices were found (simulation)\n")
        return _NO_DEVICES
    host = socket.gethostname()
    if query:
        fields, words = query
        lines = queried(fields, indexes, host, has_units="nounits" not in words)
    else:
        lines = (listing if arguments else table)(indexes, host)
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
