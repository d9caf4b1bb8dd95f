"""The settings hold, no connection was closed for them, and none is taken that shuts out who runs it."""

from subprocess import CompletedProcess
from typing import Any

import pytest

from molecule.conftest import MACHINES, Converge, On


def ssh(on: On, machine: str, user: str, *options: str) -> CompletedProcess[str]:
    always = ["-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no"]
    return on(machine, "timeout", "20", "ssh", *always, *options, f"{user}@localhost", "true", check=False)


def test_who_is_in_a_group_comes_in_and_others_do_not(on: On, machine: str) -> None:
    assert ssh(on, machine, "alice").returncode == 0
    assert ssh(on, machine, "bob").returncode == 255


def test_it_is_started_as_before(on: On) -> None:
    started_by = {
        name: on(name, "systemctl", "is-active", "ssh.socket", check=False).stdout for name in MACHINES
    }
    assert [name for name, state in started_by.items() if state == "active\n"] == [
        name for name in MACHINES if name.endswith("trixie")
    ]


def test_passwords_are_not_offered(on: On, machine: str) -> None:
    answer = ssh(on, machine, "alice", "-o", "PubkeyAuthentication=no")
    assert "Permission denied (publickey)" in answer.stderr


def test_weak_algorithms_are_refused(on: On, machine: str) -> None:
    assert ssh(on, machine, "alice", "-o", "MACs=hmac-sha2-256", "-o", "Ciphers=aes128-ctr").returncode == 0
    answer = ssh(on, machine, "alice", "-o", "MACs=hmac-sha1", "-o", "Ciphers=aes128-ctr")
    assert "no matching MAC found" in answer.stderr


def test_a_setting_of_the_site_holds(on: On, machine: str) -> None:
    assert "maxsessions 7\n" in on(machine, "sshd", "-T").stdout


def test_a_session_that_was_open_still_is(on: On, machine: str) -> None:
    """It is one of bob's, who could not open it any more."""
    assert on(machine, "systemctl", "is-active", "session").stdout == "active\n"
    assert on(machine, "pgrep", "-u", "bob", "sleep").stdout


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"groups_let_in": ["nobody"]}, "AllowGroups names none of its groups"),
        ({"more": {"PermitRootLogin": "no"}}, "PermitRootLogin is no"),
        ({"more": {"Nonsense": "yes"}}, "sshd refuses the settings"),
    ],
)
def test_nothing_changes_when_it_would_shut_out_or_is_wrong(
    on: On, converge: Converge, changes: dict[str, Any], reason: str
) -> None:
    before = [on(machine, "cat", "/etc/ssh/sshd_config.d/00-deploy.conf").stdout for machine in MACHINES]
    answer = converge(**changes)
    assert answer.returncode == 2, answer.stdout + answer.stderr
    assert reason in answer.stdout + answer.stderr
    after = [on(machine, "cat", "/etc/ssh/sshd_config.d/00-deploy.conf").stdout for machine in MACHINES]
    assert after == before


@pytest.mark.parametrize("path", ["/etc/ssh/sshd_config", "/etc/ssh/sshd_config.d/99-mine.conf"])
def test_what_others_make_of_the_settings_is_named(
    on: On, converge: Converge, machine: str, path: str
) -> None:
    add = f"cp -a {path} /root/before; printf 'Match all\nPermitEmptyPasswords yes\n' >> {path}"
    on(machine, "sh", "-c", add)
    answer = converge(only=machine)
    on(machine, "sh", "-c", f"if [ -e /root/before ]; then mv /root/before {path}; else rm {path}; fi")
    said = answer.stdout + answer.stderr
    assert answer.returncode == 2, said
    assert f"PermitEmptyPasswords is yes for ordinary users instead of no: see {path}:" in said
    assert converge(only=machine).returncode == 0
