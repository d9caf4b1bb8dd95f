"""Accounts have their ids, can log in with their keys, and never with a password."""

import pytest

from molecule.conftest import On


def test_slurm_has_the_reserved_ids(on: On, machine: str) -> None:
    assert on(machine, "id", "slurm").stdout == "uid=64030(slurm) gid=64030(slurm) groups=64030(slurm)\n"


def test_people_have_their_ids_and_groups(on: On, machine: str) -> None:
    assert (
        on(machine, "id", "alice").stdout
        == "uid=2001(alice) gid=2000(physics) groups=2000(physics),3000(project)\n"
    )
    assert on(machine, "id", "bob").stdout == "uid=2002(bob) gid=2002(bob) groups=2002(bob)\n"


def test_existing_account_is_brought_in_line(on: On, machine: str) -> None:
    assert on(machine, "getent", "passwd", "dave").stdout == "dave:x:2003:2003::/home/dave:/bin/bash\n"
    assert on(machine, "id", "--name", "--groups", "dave").stdout == "dave project\n"


def test_key_logs_in(on: On, machine: str) -> None:
    options = ["-o", "StrictHostKeyChecking=no", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR"]
    answer = on(machine, "ssh", *options, "alice@localhost", "id", "--user", "--name")
    assert answer.stdout == "alice\n"


def test_key_of_another_does_not_log_in(on: On, machine: str) -> None:
    options = ["-o", "StrictHostKeyChecking=no", "-o", "BatchMode=yes"]
    assert "Permission denied" in on(machine, "ssh", *options, "bob@localhost", "true", check=False).stderr


@pytest.mark.parametrize("name", ["alice", "bob", "slurm"])
def test_nobody_has_a_password(on: On, machine: str, name: str) -> None:
    assert on(machine, "passwd", "--status", name).stdout.split()[1] == "L"


def test_homes_are_private(on: On, machine: str) -> None:
    assert on(machine, "stat", "--format", "%U %a", "/home/alice").stdout == "alice 700\n"
    assert (
        on(machine, "stat", "--format", "%U %a", "/home/alice/.ssh/authorized_keys").stdout == "alice 600\n"
    )


@pytest.mark.parametrize(("name", "group"), [("alice", "physics"), ("bob", "bob")])
def test_everybody_has_a_directory_of_their_own(on: On, machine: str, name: str, group: str) -> None:
    said = on(machine, "stat", "--format", "%U %G %a", f"/srv/work/{name}").stdout
    assert said == f"{name} {group} 700\n"


def test_who_is_gone_gets_no_directory(on: On, machine: str) -> None:
    assert on(machine, "test", "-e", "/srv/work/carol", check=False).returncode == 1


def test_account_declared_absent_is_gone_but_its_files_stay(on: On, machine: str) -> None:
    assert on(machine, "id", "carol", check=False).returncode == 1
    assert on(machine, "test", "-d", "/home/carol").returncode == 0
