"""Users go from host to host without a key, as nobody but themselves; hosts are known by certificates."""

from collections.abc import Iterator
from subprocess import CompletedProcess

import pytest

from molecule.conftest import Converge, On

KEY = "/etc/ssh/ssh_host_ed25519_key"


def address(on: On, machine: str) -> str:
    return on(machine, "hostname", "--all-ip-addresses").stdout.split()[0]


def ssh(on: On, user: str, to: str, *options: str, source: str = "trixie") -> CompletedProcess[str]:
    command = ["timeout", "30", "ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", *options]
    return on(source, "runuser", "-u", user, "--", *command, to, "id", "-un", check=False)


@pytest.mark.parametrize(("source", "target"), [("trixie", "bookworm"), ("bookworm", "trixie")])
def test_users_come_as_themselves(on: On, source: str, target: str) -> None:
    answer = ssh(on, "alice", address(on, target), source=source)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "alice\n", "")


def test_nobody_comes_as_another(on: On) -> None:
    place = address(on, "bookworm")
    for user, account in (("alice", "bob"), ("alice", "root"), ("root", "root"), ("root", "alice")):
        answer = ssh(on, user, f"{account}@{place}")
        assert answer.returncode == 255, (user, account)
        assert "Permission denied" in answer.stderr


def test_a_user_vouches_for_nobody(on: On) -> None:
    """With a key and a list of known hosts of his own, from a host that is trusted."""
    place = address(on, "bookworm")
    make = "mkdir -pm 700 ~/.ssh; ssh-keygen -qt ed25519 -N '' -f ~/.ssh/host; "
    on("trixie", "su", "--login", "bob", "--command", make)
    public = on("trixie", "cat", "/home/bob/.ssh/host.pub").stdout
    line = f"{address(on, 'trixie')} {public.strip()}"
    on("bookworm", "sh", "-c", f"install -dm 700 -o bob ~bob/.ssh; echo '{line}' > ~bob/.ssh/known_hosts")
    who = f"user=bob,host={place},addr={place},laddr={place},lport=22"
    said = on("bookworm", "sshd", "-T", "-C", who).stdout
    assert "ignoreuserknownhosts yes\n" in said
    assert "hostbasedacceptedalgorithms ssh-ed25519-cert-v01@openssh.com\n" in said


@pytest.fixture
def other_key(on: On) -> Iterator[None]:
    """bookworm was installed anew."""
    on(
        "bookworm",
        "sh",
        "-c",
        f"cp -a {KEY} {KEY}.pub /root; rm {KEY}*; ssh-keygen -qt ed25519 -N '' -f {KEY}",
    )
    on("bookworm", "systemctl", "restart", "ssh")
    yield
    on("bookworm", "sh", "-c", "mv /root/ssh_host_ed25519_key* /etc/ssh; systemctl restart ssh")


@pytest.mark.usefixtures("other_key")
def test_a_key_that_nobody_certified_is_refused_until_it_is(on: On, converge: Converge) -> None:
    place = address(on, "bookworm")
    assert "Host key verification failed" in ssh(on, "alice", place).stderr
    assert converge().returncode == 0
    assert ssh(on, "alice", place).stdout == "alice\n"


def test_another_authority_takes_over(on: On, converge: Converge) -> None:
    place = address(on, "bookworm")
    assert converge(authority="another secret").returncode == 0
    assert ssh(on, "alice", place).stdout == "alice\n"
    assert on("bookworm", "grep", "-c", "^@cert-authority", "/etc/ssh/ssh_known_hosts").stdout == "1\n"
    assert converge().returncode == 0
    assert ssh(on, "alice", place).stdout == "alice\n"


def test_it_can_be_turned_off(on: On, converge: Converge) -> None:
    on("bookworm", "sh", "-c", "echo 'mine ssh-ed25519 AAAA' >> /etc/ssh/ssh_known_hosts")
    assert converge(host_based=False).returncode == 0
    assert ssh(on, "alice", address(on, "bookworm"), "-o", "StrictHostKeyChecking=no").returncode == 255
    assert on("bookworm", "cat", "/etc/ssh/ssh_known_hosts").stdout == "mine ssh-ed25519 AAAA\n"
    on("bookworm", "test", "!", "-e", f"{KEY}-cert.pub")
    assert converge().returncode == 0
    assert ssh(on, "alice", address(on, "bookworm")).stdout == "alice\n"
