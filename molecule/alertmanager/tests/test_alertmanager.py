"""Alerts reach those whom the routes name, and the tokens of receivers stay with Alertmanager."""

import json
import time

from molecule.conftest import MACHINES, Converge, On

TOKEN = "a-token-of-this-scenario"  # noqa: S105 - of machines that live for a minute
AMTOOL = ("amtool", "--alertmanager.url=http://127.0.0.1:9093")


def told(on: On, machine: str) -> list[tuple[str, str, list[str]]]:
    """Where a message went, whether its alerts go on, and their names."""
    lines = on(machine, "sh", "-c", "cat /srv/told 2>/dev/null || true").stdout.splitlines()
    messages = [(line.partition(" ")[0], json.loads(line.partition(" ")[2])) for line in lines]
    return [
        (path, message["status"], [alert["labels"]["alertname"] for alert in message["alerts"]])
        for path, message in messages
    ]


def is_told(on: On, machine: str, expected: tuple[str, str, list[str]]) -> bool:
    """Whether a message arrives within some seconds."""
    deadline = time.monotonic() + 30
    while not (arrived := expected in told(on, machine)) and time.monotonic() < deadline:
        time.sleep(0.5)
    return arrived


def raise_alert(on: On, machine: str, name: str, severity: str, *options: str) -> None:
    on(
        machine,
        *AMTOOL,
        "alert",
        "add",
        *options,
        f"alertname={name}",
        f"severity={severity}",
        "instance=node1",
    )


def test_alerts_reach_whom_the_routes_name(on: On, machine: str) -> None:
    raise_alert(on, machine, "DiskSlow", "warning")
    assert is_told(on, machine, (f"/room?token={TOKEN}", "firing", ["DiskSlow"]))
    raise_alert(on, machine, "HostDown", "critical")
    assert is_told(on, machine, ("/pager", "firing", ["HostDown"]))


def test_an_alert_that_another_makes_needless_is_not_sent(on: On, machine: str) -> None:
    raise_alert(on, machine, "GpuLost", "critical")
    assert is_told(on, machine, ("/pager", "firing", ["GpuLost"]))
    raise_alert(on, machine, "GpuWarm", "warning")
    time.sleep(4)
    assert [message for message in told(on, machine) if "GpuWarm" in message[2]] == []


def test_tokens_are_for_alertmanager_alone(on: On, machine: str) -> None:
    search = ("grep", "-rlsF", TOKEN, "/etc", "/run", "/tmp")
    nobody = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
    assert on(machine, *search, check=False).stdout.split() == ["/etc/prometheus/alertmanager.yml"]
    assert on(machine, *nobody, *search, check=False).stdout == ""
    page = "/etc/prometheus/alertmanager-web.yml"
    assert on(machine, "stat", "--format=%U %a", page).stdout == "prometheus 600\n"
    assert TOKEN not in on(machine, "ps", "-e", "-ww", "-o", "args=").stdout


def test_it_listens_on_one_address_and_starts_with_the_machine(on: On, machine: str) -> None:
    listening = on(machine, "ss", "--listening", "--tcp", "--numeric", "--no-header").stdout
    ports = [line.split()[3] for line in listening.splitlines() if ":909" in line]
    assert ports == ["127.0.0.1:9093"]
    assert on(machine, "systemctl", "is-enabled", "prometheus-alertmanager").stdout == "enabled\n"


def test_a_route_to_nobody_is_refused(on: On, converge: Converge) -> None:
    before = [on(machine, "sha256sum", "/etc/prometheus/alertmanager.yml").stdout for machine in MACHINES]
    answer = converge(night="somebody-else")
    assert "failed=0" not in answer.stdout
    assert [
        on(machine, "sha256sum", "/etc/prometheus/alertmanager.yml").stdout for machine in MACHINES
    ] == before
    assert TOKEN not in answer.stdout + answer.stderr


def routes(on: On) -> list[str]:
    """Who is told about a critical alert, on each machine."""
    command = (*AMTOOL, "config", "routes", "test", "severity=critical")
    return [on(machine, *command).stdout for machine in MACHINES]


def test_a_change_is_taken_by_a_reload(on: On, converge: Converge) -> None:
    pid = ("systemctl", "show", "--property=MainPID", "prometheus-alertmanager")
    before = [on(machine, *pid).stdout for machine in MACHINES]
    assert converge(night="room").stdout.count("changed=2") == len(MACHINES)
    assert [on(machine, *pid).stdout for machine in MACHINES] == before
    assert routes(on) == ["room\n"] * len(MACHINES)


def test_without_receivers_nobody_is_told(on: On, converge: Converge) -> None:
    answer = converge(alertmanager_receivers=[], alertmanager_routes=[])
    assert answer.returncode == 0
    assert routes(on) == ["nobody is told\n"] * len(MACHINES)
