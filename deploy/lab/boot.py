"""Boots a container such that Slurm can give jobs in it a private /tmp.

For that slurmd mounts the mount namespace of a job, which the kernel allows only for one with a higher
number than slurmd's own. Linux 6.18 hands out numbers from a stock per CPU, so that a later namespace can
have a lower number. A container that is started on the CPU with the lowest stock has the lowest number; then
it may run on all of them. A real machine's own namespace is the first there is.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from deploy.lab.podman import podman

_PASSES = 5
_MOST_CPUS = 1024
# NS_GET_MNTNS_ID of ioctl_nsfs(2).
_NUMBER_OF_OWN_NAMESPACE = """
import fcntl, struct
with open("/proc/self/ns/mnt") as namespace:
    print(struct.unpack("Q", fcntl.ioctl(namespace, 0x8008B705, bytes(8)))[0])
"""


def boot(name: str, *arguments: str) -> None:
    """Runs podman with the arguments that start the container of that name. Raises DeployError."""
    with _on_one_cpu(_cpu_with_lowest_numbers()):
        podman(*arguments)
    _set_free(int(podman("inspect", "--format", "{{.State.Pid}}", name)))


@cache
def _cpu_with_lowest_numbers() -> int | None:
    """None where it makes no difference, or the kernel does not tell."""
    numbers = {cpu: _next_number(cpu) for cpu in _all_cpus()}
    known = {cpu: number for cpu, number in numbers.items() if number is not None}
    return min(known, key=lambda cpu: known[cpu]) if len(known) > 1 else None


def _next_number(cpu: int) -> int | None:
    command = ["taskset", "--cpu-list", str(cpu), "unshare", "--mount"]
    command += [sys.executable, "-I", "-S", "-c", _NUMBER_OF_OWN_NAMESPACE]
    answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return int(answer.stdout) if answer.returncode == 0 else None


@contextmanager
def _on_one_cpu(cpu: int | None) -> Iterator[None]:
    """What this thread starts meanwhile runs on one CPU."""
    os.sched_setaffinity(0, _all_cpus() if cpu is None else {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, _all_cpus())


@cache
def _all_cpus() -> frozenset[int]:
    """The CPUs that this process may choose from, whichever its caller bound it to."""
    bound = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(_MOST_CPUS))
    chosen = os.sched_getaffinity(0)
    os.sched_setaffinity(0, bound)
    return frozenset(chosen)


def _set_free(init: int) -> None:
    """Lets all processes of a container run on every CPU, those that start meanwhile too."""
    all_cpus = _all_cpus()
    for _ in range(_PASSES):
        bound = [task for task in _tasks(init) if _affinity(task) not in (all_cpus, None)]
        for task in bound:
            try:
                os.sched_setaffinity(task, all_cpus)
            except OSError:
                continue  # it ended
        if not bound:
            return


def _tasks(init: int) -> Iterator[int]:
    namespace = _namespace(Path(f"/proc/{init}"))
    for process in Path("/proc").glob("[0-9]*"):
        if namespace and _namespace(process) == namespace:
            with suppress(FileNotFoundError, ProcessLookupError):  # it ended
                yield from (int(task.name) for task in (process / "task").iterdir())


def _namespace(process: Path) -> str:
    try:
        return str((process / "ns" / "pid").readlink())
    except OSError:
        return ""


def _affinity(task: int) -> set[int] | None:
    try:
        return os.sched_getaffinity(task)
    except OSError:
        return None
