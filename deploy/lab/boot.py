"""Boots a container such that Slurm can give jobs in it a private /tmp.

For that slurmd mounts the mount namespace of a job, which the kernel allows only for one with a higher
number than slurmd's own. Linux 6.18 hands out numbers from a stock per CPU, so that a later namespace can
have a lower number. The stocks below the container's number are used up, and later ones lie above all numbers
there are. A real machine's own namespace is the first there is.
"""

import struct
import subprocess
import sys
from contextlib import suppress
from fcntl import ioctl
from pathlib import Path

from deploy.lab.podman import podman

# NS_GET_MNTNS_ID of ioctl_nsfs(2).
_MNTNS_ID = 0x8008B705
_MOST_CPUS = 1024
# A stock has some thousand numbers, of which any kind of namespace takes one; see CLONE_NEWUTS in unshare(2).
_USE_UP = f"""
import ctypes, fcntl, os, struct, sys

unshare = ctypes.CDLL(None).unshare
above = int(sys.argv[1])

def new_mount_namespace():
    if unshare(0x00020000) != 0:
        sys.exit("no new namespace")
    with open("/proc/self/ns/mnt") as namespace:
        return struct.unpack("Q", fcntl.ioctl(namespace, {_MNTNS_ID}, bytes(8)))[0]

os.sched_setaffinity(0, range({_MOST_CPUS}))
for cpu in os.sched_getaffinity(0):
    os.sched_setaffinity(0, {{cpu}})
    while new_mount_namespace() < above:
        for _ in range(256):
            unshare(0x04000000)
"""


def boot(name: str, *arguments: str) -> None:
    """Runs podman with the arguments that start the container of that name. Raises DeployError."""
    podman(*arguments)
    number = _number_of_namespace(int(podman("inspect", "--format", "{{.State.Pid}}", name)))
    if number is not None:
        _use_up_numbers_below(number)


def _number_of_namespace(process: int) -> int | None:
    """Of its mounts; None where the process is gone, or the kernel does not tell."""
    with suppress(OSError), Path(f"/proc/{process}/ns/mnt").open("rb") as namespace:
        number: int = struct.unpack("Q", ioctl(namespace, _MNTNS_ID, bytes(8)))[0]
        return number
    return None


def _use_up_numbers_below(number: int) -> None:
    """On every CPU, the next namespace will have a higher one."""
    program = [sys.executable, "-I", "-S", "-c", _USE_UP, str(number)]
    subprocess.run(program, stdin=subprocess.DEVNULL, capture_output=True, check=False)
