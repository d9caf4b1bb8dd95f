"""The client is there, and a mount that is impossible leaves everything as it was."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

On = Callable[..., CompletedProcess[str]]

MACHINES = ["bookworm", "trixie"]


def converge_with(*mounts: object) -> CompletedProcess[str]:
    command = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        f"--inventory={os.environ['MOLECULE_INVENTORY_FILE']}",
        f"--extra-vars={json.dumps({'mounts': mounts})}",
        "--tags=configure,service",
        str(Path(__file__).parents[1] / "converge.yml"),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("machine", MACHINES)
def test_the_helper_of_mount_is_there(on: On, machine: str) -> None:
    assert "usage" in on(machine, "mount.nfs", "-h", check=False).stdout.lower()


@pytest.mark.parametrize(
    ("mount", "said"),
    [
        # Nobody serves there; a kernel without NFS says so before.
        (
            {"path": "/mnt/home", "server": "127.0.0.1", "export": "/srv/home"},
            r"mount -t nfs .*127\.0\.0\.1:/srv/home",
        ),
        (
            {"path": "/mnt/others", "server": "127.0.0.1"},
            r"fstab mounts something else already at /mnt/others",
        ),
    ],
)
def test_an_impossible_mount_changes_nothing(on: On, mount: dict[str, str], said: str) -> None:
    before = {name: on(name, "cat", "/etc/fstab", "/proc/self/mounts").stdout for name in MACHINES}
    answer = converge_with(mount)
    assert answer.returncode == 2, answer.stdout + answer.stderr
    assert sorted(re.findall(rf"fatal: \[molecule-nfs-client-(\w+)\].*{said}", answer.stderr)) == MACHINES
    for name in MACHINES:
        assert on(name, "cat", "/etc/fstab", "/proc/self/mounts").stdout == before[name]
        assert on(name, "test", "-d", "/mnt/home/alice").returncode == 0
        assert on(name, "find", "/run", "-maxdepth", "1", "-name", "deploy-mount-*").stdout == ""
