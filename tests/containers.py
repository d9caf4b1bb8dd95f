"""Commands in containers, without the third of a second that `podman exec` takes on a busy machine."""

import subprocess
from functools import cache
from pathlib import Path

_ENVIRONMENT = (
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/root",
    "TERM=xterm",
    "container=podman",
)


def inside(container: str, *command: str) -> list[str]:
    """The call that runs a command as a container's root, in its namespaces and with the usual environment.

    It is not in the container's control group and has all capabilities: good to look and to break things, not
    for what a user would type. A container that does not run is podman's to explain.
    """
    process = _init_of(container)
    if process is None:
        return ["podman", "exec", "--interactive", container, *command]
    return ["nsenter", "--target", process, "--all", "env", "--ignore-environment", *_ENVIRONMENT, *command]


def in_network_of(container: str, *command: str) -> list[str]:
    """The call that runs a program of this machine in a container's network."""
    process = _init_of(container)
    assert process is not None, f"{container} does not run"
    return ["nsenter", "--target", process, "--net", *command]


def _init_of(container: str) -> str | None:
    file = _pid_file(container)
    try:
        process = file.read_text(encoding="ascii").strip()
        # The number may be another process's by now.
        if file.parts[-3] in Path(f"/proc/{process}/cgroup").read_text(encoding="ascii"):
            return process
    except OSError:
        pass
    _pid_file.cache_clear()
    return None


@cache
def _pid_file(container: str) -> Path:
    """Where podman keeps the number of a container's first process, below a directory named by its id."""
    command = ["podman", "inspect", "--type=container", "--format={{.PidFile}}", container]
    return Path(subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "/")
