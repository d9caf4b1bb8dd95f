#!/usr/bin/python3 -I
"""Keeps a file for each GPU with the jobs that have it, for NVIDIA's exporter.

``gpu_job_files.py add DIRECTORY`` of the prolog, ``gpu_job_files.py remove DIRECTORY`` of the epilog; which
job and which GPUs, Slurm says in the environment.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path


def numbers(text: str) -> Iterator[str]:
    """``0,2-3`` as 0, 2 and 3."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield from map(str, range(int(first), int(last or first) + 1))


def main(action: str, directory: Path) -> int:
    """Adds the job to the files of its GPUs, or takes it out of all."""
    job = os.environ["SLURM_JOB_ID"]
    # Prologs and epilogs of several jobs run at once.
    lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    if action == "add":
        for gpu in numbers(os.environ.get("SLURM_JOB_GPUS", "")):
            file = directory / gpu
            jobs = file.read_text(encoding="ascii").split() if file.exists() else []
            _write(file, [*(other for other in jobs if other != job), job])
        return 0
    for file in directory.iterdir():
        jobs = file.read_text(encoding="ascii").split()
        if job in jobs:
            _write(file, [other for other in jobs if other != job])
    return 0


def _write(file: Path, jobs: list[str]) -> None:
    file.write_text("".join(f"{job}\n" for job in jobs), encoding="ascii")
    file.chmod(0o644)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
