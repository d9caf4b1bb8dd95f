"""Nobody writes more than the limit, and everybody sees theirs."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

On = Callable[..., CompletedProcess[str]]


@pytest.fixture(params=["bookworm", "trixie"])
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def as_user(inside: On, machine: str, user: str, *words: str) -> CompletedProcess[str]:
    return inside(machine, "runuser", f"--user={user}", "--", *words, check=False)


def write(inside: On, machine: str, user: str, megabytes: int) -> CompletedProcess[str]:
    """Writes a file of a size into the user's directory; removes it."""
    file = f"/srv/{user}/file"
    answer = as_user(inside, machine, user, "dd", "if=/dev/zero", f"of={file}", "bs=1M", f"count={megabytes}")
    inside(machine, "rm", "-f", file)
    return answer


def test_more_than_the_limit_cannot_be_written(inside: On, machine: str) -> None:
    assert write(inside, machine, "alice", 15).returncode == 0
    assert "Disk quota exceeded" in write(inside, machine, "alice", 25).stderr


def test_a_limit_of_ones_own_takes_the_place_of_that_of_each(inside: On, machine: str) -> None:
    assert write(inside, machine, "bob", 35).returncode == 0
    assert "Disk quota exceeded" in write(inside, machine, "bob", 45).stderr


def test_files_are_counted(inside: On, machine: str) -> None:
    answer = as_user(
        inside,
        machine,
        "alice",
        "sh",
        "-c",
        "cd; mkdir many; for i in $(seq 60); do : > many/$i || exit 1; done",
    )
    inside(machine, "rm", "-rf", "/srv/alice/many")
    assert "Disk quota exceeded" in answer.stderr


def test_an_undeclared_limit_is_left_alone(inside: On, machine: str) -> None:
    limits = inside(machine, "show-quotas", "--limits").stdout.splitlines()
    assert limits == [
        "user alice 10240 20480 0 50",
        "user bob 0 40960 0 0",
        "user carol 0 8192 0 0",
        "group alice 0 30720 0 0",
    ]


def test_people_see_theirs_here_and_over_nfs(inside: On, machine: str) -> None:
    inside(machine, "sh", "-c", "echo x > /srv/bob/something; chown bob /srv/bob/something; sync")
    shown = [line.split() for line in as_user(inside, machine, "bob", "show-quotas").stdout.splitlines()]
    assert shown[0][:5] == ["file", "system", "of", "used", "limit"]
    of_bob = {line[0]: line for line in shown if line[1:3] == ["user", "bob"]}
    assert set(of_bob) == {"/srv", "/mnt/srv"}
    for line in of_bob.values():
        assert line[5:7] == ["40.0", "MiB"]
        assert int(line[3]) > 0


def test_a_file_system_without_quotas_is_refused_with_what_to_do(inside: On) -> None:
    inside(
        "trixie",
        "sh",
        "-c",
        "mountpoint -q /mnt/none || { mkdir -p /mnt/none; mount -t tmpfs none /mnt/none; }",
    )
    command = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        f"--inventory={os.environ['MOLECULE_INVENTORY_FILE']}",
        "--limit=molecule-quotas-trixie",
        f"--extra-vars={json.dumps({'path': '/mnt/none'})}",
        str(Path(__file__).parents[1] / "converge.yml"),
    ]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 2, answer.stdout + answer.stderr
    assert "/mnt/none has no group quotas" in answer.stdout + answer.stderr
    assert "tune2fs -O quota" in answer.stdout + answer.stderr
