"""What is declared is mounted, now and by fstab; nothing changes under a process, no file is hidden."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

On = Callable[..., CompletedProcess[str]]

MACHINES = ["bookworm", "trixie"]
SERVER = "127.0.0.1"
HOME = {"path": "/mnt/home", "server": SERVER, "export": "/srv/home"}


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def converge_with(*mounts: object) -> CompletedProcess[str]:
    command = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        f"--inventory={os.environ['MOLECULE_INVENTORY_FILE']}",
        *([f"--extra-vars={json.dumps({'mounts': mounts})}"] if mounts else []),
        str(Path(__file__).parents[1] / "converge.yml"),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def mounted(inside: On, machine: str, path: str) -> str:
    """Source and type of what is mounted at a path."""
    return inside(
        machine, "findmnt", "--noheadings", "--output=SOURCE,FSTYPE", path, check=False
    ).stdout.strip()


def test_what_is_written_arrives_at_the_server(inside: On, machine: str) -> None:
    inside(machine, "chmod", "1777", "/srv/home")
    inside(machine, "runuser", "--user=nobody", "--", "touch", "/mnt/home/from-a-client")
    assert inside(machine, "stat", "--format=%U", "/srv/home/from-a-client").stdout == "nobody\n"
    inside(machine, "rm", "/srv/home/from-a-client")


def test_options_are_the_default_ones_or_the_mounts_own(inside: On, machine: str) -> None:
    home = (
        inside(machine, "findmnt", "--noheadings", "--output=OPTIONS", "/mnt/home").stdout.strip().split(",")
    )
    assert {"rw", "nosuid", "nodev", "noatime", "hard"} <= set(home)
    other = (
        inside(machine, "findmnt", "--noheadings", "--output=OPTIONS", "/mnt/software")
        .stdout.strip()
        .split(",")
    )
    assert {"ro", "soft"} <= set(other)


def test_fstab_mounts_the_same_at_boot(inside: On, machine: str) -> None:
    inside(machine, "umount", "/mnt/home", "/mnt/software")
    inside(machine, "mount", "--all", "--types", "nfs")
    assert mounted(inside, machine, "/mnt/home").split()[0] == f"{SERVER}:/srv/home"
    assert mounted(inside, machine, "/mnt/software").split()[0] == f"{SERVER}:/srv/software"


@pytest.fixture
def working_there(inside: On) -> Iterator[None]:
    """A process on every machine that works in the mounted directory."""
    for name in MACHINES:
        inside(
            name,
            "systemd-run",
            "--quiet",
            "--unit=user-of-home",
            "--working-directory=/mnt/home",
            "sleep",
            "600",
        )
    yield
    for name in MACHINES:
        inside(name, "systemctl", "stop", "user-of-home", check=False)
    answer = converge_with()
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.usefixtures("working_there")
def test_a_mount_in_use_stays_until_nobody_uses_it(inside: On) -> None:
    moved = {**HOME, "export": "/srv/other"}
    answer = converge_with(moved)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "left as it is until the next boot" in answer.stdout + answer.stderr
    for name in MACHINES:
        assert mounted(inside, name, "/mnt/home").split()[0] == f"{SERVER}:/srv/home"
        assert f"{SERVER}:/srv/other /mnt/home nfs" in inside(name, "cat", "/etc/fstab").stdout
        assert mounted(inside, name, "/mnt/software") == ""
        inside(name, "systemctl", "stop", "user-of-home")
    answer = converge_with(moved)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    for name in MACHINES:
        assert mounted(inside, name, "/mnt/home").split()[0] == f"{SERVER}:/srv/other"


def test_a_directory_with_files_that_the_server_lacks_is_not_hidden(inside: On) -> None:
    for name in MACHINES:
        inside(name, "mkdir", "-p", "/mnt/admins/carol")
    answer = converge_with(HOME, {"path": "/mnt/admins", "server": SERVER, "export": "/srv/home"})
    assert answer.returncode == 2, answer.stdout + answer.stderr
    assert "/mnt/admins holds carol, which 127.0.0.1:/srv/home does not have" in answer.stdout + answer.stderr
    for name in MACHINES:
        assert mounted(inside, name, "/mnt/admins") == ""
        assert inside(name, "test", "-d", "/mnt/admins/carol").returncode == 0
