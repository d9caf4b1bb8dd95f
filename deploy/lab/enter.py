"""Commands inside a machine: as root or a user, or through ssh like any admin."""

import shlex
import subprocess
from collections.abc import Sequence

from deploy.errors import error
from deploy.lab.directory import LabDirectory
from deploy.lab.machine import inspect_machine
from deploy.lab.machines import kind_named
from deploy.lab.state import Lab, LabHost, need_lab


def execute(
    lab_name: str, host_name: str, command: Sequence[str], *, user: str | None, terminal: bool
) -> int:
    """Run a command on a machine with this process's input and output; returns its exit code."""
    inspect_machine()
    lab, host = _running(lab_name, host_name)
    return subprocess.run(
        exec_command(lab, host.name, command, user=user, terminal=terminal), check=False
    ).returncode


def exec_command(
    lab: Lab, host: str, command: Sequence[str], *, user: str | None, terminal: bool
) -> list[str]:
    """The call for ``execute``: a login session, so that /etc/environment and profiles count."""
    session = ["su", "--login", user or "root", "--command", shlex.join(command)]
    return kind_named(lab.machines).entered(lab, host, session, terminal=terminal)


def login(lab_name: str, host_name: str) -> int:
    """Log in with ssh as the admin user; returns ssh's exit code."""
    inspect_machine()
    lab, host = _running(lab_name, host_name)
    return subprocess.run(LabDirectory(lab.directory).keys.ssh_command(host.address), check=False).returncode


def _running(lab_name: str, host_name: str) -> tuple[Lab, LabHost]:
    lab = need_lab(lab_name)
    host = lab.host(host_name)
    if not host.running:
        raise error(
            "lab-host-off",
            f"{host.name} is powered off",
            where=host.name,
            hint=f"deploy lab start --name {lab.name} {host.name}",
        )
    return lab, host
