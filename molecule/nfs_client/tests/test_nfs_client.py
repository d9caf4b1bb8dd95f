"""The client is there, and a mount that is impossible leaves everything as it was."""

import re

import pytest

from molecule.conftest import MACHINES, Converge, On


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
def test_an_impossible_mount_changes_nothing(
    on: On, converge: Converge, mount: dict[str, str], said: str
) -> None:
    before = {name: on(name, "cat", "/etc/fstab", "/proc/self/mounts").stdout for name in MACHINES}
    answer = converge(tags="configure,service", mounts=[mount])
    assert answer.returncode == 2, answer.stdout + answer.stderr
    assert sorted(re.findall(rf"fatal: \[molecule-nfs-client-(\w+)\].*{said}", answer.stderr)) == MACHINES
    for name in MACHINES:
        assert on(name, "cat", "/etc/fstab", "/proc/self/mounts").stdout == before[name]
        assert on(name, "test", "-d", "/mnt/home/alice").returncode == 0
        assert on(name, "find", "/run", "-maxdepth", "1", "-name", "deploy-mount-*").stdout == ""
