"""What a host logs arrives, also what it logged while the server was away, and at no other server."""

import re
import time

import pytest

from molecule.conftest import MACHINES, Converge, On

RECEIVED = "/run/received"
FLOOD = 12000
"""More lines than wait in memory."""
ON_ITS_WAY = 2


def arrives(on: On, machine: str, text: str, seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while on(machine, "grep", "--quiet", "--fixed-strings", text, RECEIVED, check=False).returncode != 0:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)
    return True


def test_what_is_logged_arrives_with_the_hosts_name(on: On, machine: str) -> None:
    on(machine, "logger", "--tag=probe", "hello")
    assert arrives(on, machine, f"molecule-log-client-{machine} probe: hello")


def test_lines_of_files_arrive_with_the_files_name(on: On, machine: str) -> None:
    """The directory appears long after rsyslog was started."""
    on(machine, "mkdir", "/var/log/slurm")
    on(machine, "sh", "-c", "echo 'error: node is tired' >> /var/log/slurm/slurmd.log")
    assert arrives(on, machine, f"molecule-log-client-{machine} slurmd: error: node is tired")
    on(machine, "sh", "-c", "echo 'first line' >> /var/log/application")
    assert arrives(on, machine, f"molecule-log-client-{machine} application: first line")


def test_a_rotated_file_is_still_followed(on: On, machine: str) -> None:
    path = "/var/log/slurm/slurmctld.log"
    on(machine, "sh", "-c", f"echo before >> {path}")
    assert arrives(on, machine, "slurmctld: before")
    on(machine, "sh", "-c", f"mv {path} {path}.1 && echo renamed >> {path}.1 && echo behind >> {path}")
    assert arrives(on, machine, "slurmctld: behind")
    on(machine, "sh", "-c", f"cp {path} {path}.2 && : > {path} && sleep 2 && echo emptied >> {path}")
    assert arrives(on, machine, "slurmctld: emptied")


def test_nothing_is_lost_while_the_server_is_away_and_nobody_waits(on: On, machine: str) -> None:
    on(machine, "systemctl", "stop", "sink")
    notice(on, machine)
    on(machine, "logger", "the first after it went")
    on(machine, "sh", "-c", f"seq --format='line %.0f.' {FLOOD} >> /var/log/application")
    began = time.monotonic()
    numbers = f"seq --format='message %.0f.' {FLOOD}"
    on(machine, "sh", "-c", f"{numbers} | logger --socket /run/systemd/journal/syslog --tag=probe")
    assert time.monotonic() - began < 60
    spooled(on, machine)
    on(machine, "systemctl", "restart", "rsyslog")
    on(machine, "systemctl", "start", "sink")
    assert arrives(on, machine, f"application: line {FLOOD}.", 120)
    assert arrives(on, machine, f"probe: message {FLOOD}.", 120)
    assert arrives(on, machine, "the first after it went")
    received = on(machine, "cat", RECEIVED).stdout
    # Plain TCP does not say what has arrived: what was on its way when the server went can be lost.
    assert len(set(re.findall(r" application: line (\d+)\.", received))) >= FLOOD - ON_ITS_WAY
    assert len(set(re.findall(r" probe: message (\d+)\.", received))) >= FLOOD - ON_ITS_WAY


def notice(on: On, machine: str, seconds: float = 60) -> None:
    """Waits until the client knows that nobody answers: TCP takes what is on its way with it."""
    deadline = time.monotonic() + seconds
    said = ("journalctl", "--unit=rsyslog", "--output=cat")
    while "suspended (module 'builtin:omfwd')" not in on(machine, *said).stdout:
        assert time.monotonic() < deadline, "the client did not notice that the server went"
        on(machine, "logger", "is anybody there?")
        time.sleep(0.5)


def spooled(on: On, machine: str, seconds: float = 30) -> None:
    """Waits until logs are on disk."""
    deadline = time.monotonic() + seconds
    while not on(machine, "find", "/var/spool/rsyslog", "-name", "deploy-forward.0*").stdout:
        assert time.monotonic() < deadline, "nothing was written to disk"
        time.sleep(0.5)


def test_the_files_are_nobody_elses(on: On, machine: str) -> None:
    modes = on(machine, "find", "/var/spool/rsyslog", "-type", "f", "-perm", "/o+r").stdout
    assert modes == ""


@pytest.mark.parametrize("lie", [{"server_name": "other"}, {"authority_of": "other"}], ids=str)
def test_another_server_gets_nothing(on: On, converge: Converge, lie: dict[str, str]) -> None:
    text = f"not for one with another {next(iter(lie))}"
    answer = converge(**lie)
    assert answer.returncode == 0, answer.stdout
    for machine in MACHINES:
        on(machine, "logger", text)
    time.sleep(5)
    heard = [on(machine, "cat", RECEIVED).stdout for machine in MACHINES]
    complaints = [on(machine, "journalctl", "--unit=rsyslog", "--output=cat").stdout for machine in MACHINES]
    answer = converge()
    assert answer.returncode == 0, answer.stdout
    assert not any(text in received for received in heard)
    assert all("certificate" in said or "peer" in said for said in complaints)
    assert all(arrives(on, machine, text) for machine in MACHINES)
