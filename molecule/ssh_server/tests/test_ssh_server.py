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


def test_a_change_after_many_restarts_shuts_nobody_out(on: On, converge: Converge, machine: str) -> None:
    """Of a service that was started five times in ten seconds, systemd refuses the next start."""
    on(machine, "sh", "-c", "systemctl reset-failed ssh; for i in 1 2 3 4 5; do systemctl restart ssh; done")
    changed = converge(only=machine, more={"MaxSessions": "8"})
    came_in = ssh(on, machine, "alice").returncode
    back = converge(only=machine)
    assert changed.returncode == 0, changed.stdout + changed.stderr
    assert came_in == 0
    assert back.returncode == 0, back.stdout + back.stderr


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


def keyboard(on: On, machine: str, user: str) -> str:
    """What sshd says of keyboard-interactive for a user."""
    who = f"user={user},host=192.0.2.1,addr=192.0.2.1,laddr=192.0.2.2,lport=22"
    said = on(machine, "sshd", "-T", "-C", who).stdout.lower()
    return next(line.split()[1] for line in said.splitlines() if line.startswith("kbdinteractive"))


def test_where_users_come_by_their_jobs_admins_alone_have_keyboard_interactive(
    on: On, converge: Converge
) -> None:
    """alice is an admin; others' files say that everybody has it, for all and in a block of their own."""
    theirs, offered = "/etc/ssh/sshd_config.d/50-site.conf", {"KbdInteractiveAuthentication": "yes"}
    for machine in MACHINES:
        on(machine, "sh", "-c", f"printf 'Match all\nKbdInteractiveAuthentication yes\n' > {theirs}")
    try:
        answer = converge(by_job=True, more=offered)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        said = {
            (machine, user): keyboard(on, machine, user)
            for machine in MACHINES
            for user in ("root", "alice", "bob", "nobody")
        }
        assert "changed=0" in converge(by_job=True, more=offered).stdout
        methods = {**offered, "AuthenticationMethods": "publickey,keyboard-interactive"}
        refused = converge(by_job=True, more=methods)
    finally:
        for machine in MACHINES:
            on(machine, "rm", theirs)
        last = converge()
    assert last.returncode == 0, last.stdout + last.stderr
    assert said == {(machine, user): "yes" if user in {"root", "alice"} else "no" for machine, user in said}
    assert refused.returncode == 2
    assert (
        "AuthenticationMethods asks ordinary users for what is turned off" in refused.stdout + refused.stderr
    )
    assert {keyboard(on, machine, user) for machine in MACHINES for user in ("root", "bob")} == {"no"}
