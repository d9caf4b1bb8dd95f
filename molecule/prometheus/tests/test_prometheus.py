"""Prometheus asks its targets, takes changes without a restart, and nothing that it could not read."""

import functools
import json
import re
import time
from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

import pytest

from molecule.conftest import ASK, MACHINES, Converge, On

PASSWORD = "a-word-of-this-scenario"  # noqa: S105 - of machines that live for a minute
PAGE = "http://127.0.0.1:9090"


def ask(on: On, machine: str, path: str) -> Any:  # noqa: ANN401 - whatever the page answers
    """What its programming interface answers, when it does: it reads its data first."""
    words = (*ASK, "--config", "-", f"{PAGE}/api/v1/{path}")
    return json.loads(on(machine, *words, data=f'user = "watcher:{PASSWORD}"').stdout)["data"]


def targets(on: On, machine: str) -> dict[tuple[str, str], str]:
    """Job and instance of every target -> whether it answers."""
    active = ask(on, machine, "targets?state=active")["activeTargets"]
    return {(found["labels"]["job"], found["labels"]["instance"]): found["health"] for found in active}


def queries(on: On, machine: str) -> list[str]:
    """The expressions of the rules of the site."""
    groups = ask(on, machine, "rules")["groups"]
    return [rule["query"] for group in groups for rule in group["rules"] if rule["name"] == "RuleOfTheSite"]


def start(on: On, machine: str) -> str:
    return on(machine, "systemctl", "show", "--property=InactiveExitTimestampMonotonic", "prometheus").stdout


def eventually(asked: Callable[[], object], expected: object) -> object:
    """The answer to a question once it is as expected, or what it is after some seconds."""
    deadline = time.monotonic() + 45
    while (answer := asked()) != expected and time.monotonic() < deadline:
        time.sleep(0.5)
    return answer


def test_all_targets_answer_by_their_names(on: On, machine: str) -> None:
    expected = {
        ("node", "exporter"): "up",
        ("prometheus", "itself"): "up",
        ("site", "127.0.0.1:9090"): "up",
    }
    assert eventually(lambda: targets(on, machine), expected) == expected


def test_nobody_looks_without_the_password(on: On, machine: str) -> None:
    code = ("curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}", f"{PAGE}/metrics")
    assert on(machine, *code).stdout == "401"


def test_passwords_are_for_prometheus_alone(on: On, machine: str) -> None:
    search = ("grep", "-rlsF", PASSWORD, "/etc", "/run", "/tmp", "/var")
    nobody = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
    assert on(machine, *search, check=False).stdout.split() == ["/etc/prometheus/prometheus.yml"]
    assert on(machine, *nobody, *search, check=False).stdout == ""


def test_what_it_keeps_is_limited(on: On, machine: str) -> None:
    flags = ask(on, machine, "status/flags")
    assert (flags["storage.tsdb.retention.time"], flags["storage.tsdb.retention.size"]) == ("10d", "1GiB")
    assert (
        "    cluster: lab\n    runbooks: https://wiki.example.org/\n"
        in ask(on, machine, "status/config")["yaml"]
    )


def test_it_listens_on_the_given_address_alone_and_starts_with_the_machine(on: On, machine: str) -> None:
    listening = on(machine, "ss", "--listening", "--tcp", "--numeric", "--no-header").stdout
    assert [line.split()[3] for line in listening.splitlines() if ":9090" in line] == ["127.0.0.1:9090"]
    assert on(machine, "systemctl", "is-enabled", "prometheus").stdout == "enabled\n"


def changed(answer: CompletedProcess[str]) -> list[int]:
    """The number of changes on each machine."""
    return [int(found) for found in re.findall(r"changed=(\d+)", answer.stdout)]


def test_changed_rules_are_reloaded(on: On, converge: Converge) -> None:
    before = [start(on, machine) for machine in MACHINES]
    answer = converge(expression="up == 2")
    assert changed(answer) == [2] * len(MACHINES), answer.stdout
    for machine in MACHINES:
        assert eventually(functools.partial(queries, on, machine), ["up == 2"]) == ["up == 2"]
    assert [start(on, machine) for machine in MACHINES] == before


@pytest.mark.parametrize(
    ("values", "refusal"),
    [
        ({"expression": "up =="}, "/etc/prometheus/rules is left as it is"),
        ({"expression": "up == 2", "prometheus_scrape_interval": "soon"}, ""),
    ],
)
def test_what_promtool_refuses_is_not_put_in_place(
    on: On, converge: Converge, values: dict[str, str], refusal: str
) -> None:
    files = ("sh", "-c", "sha256sum /etc/prometheus/*.yml /etc/prometheus/rules/*")
    before = [(on(machine, *files).stdout, start(on, machine)) for machine in MACHINES]
    answer = converge(**values)
    assert "failed=0" not in answer.stdout
    assert refusal in answer.stdout + answer.stderr
    assert [(on(machine, *files).stdout, start(on, machine)) for machine in MACHINES] == before


def test_a_lost_reload_is_made_up_for(on: On, converge: Converge) -> None:
    """As when a run is cut off between writing a file and the reload."""
    assert changed(converge(expression="up == 2")) == [0] * len(MACHINES)
    for machine in MACHINES:
        on(machine, "touch", "/etc/prometheus/prometheus.yml")
    assert changed(converge(expression="up == 2")) == [1] * len(MACHINES)


def test_another_time_to_keep_restarts_it(on: On, converge: Converge) -> None:
    before = [start(on, machine) for machine in MACHINES]
    assert changed(converge(kept="20d", expression="up == 2")) == [2] * len(MACHINES)
    for machine, was in zip(MACHINES, before, strict=True):
        assert start(on, machine) != was
        assert ask(on, machine, "status/flags")["storage.tsdb.retention.time"] == "20d"


def test_a_release_takes_the_place_of_the_package(on: On, machine: str, converge: Converge) -> None:
    """Last: the package stays, and is not used any more."""
    pack = "mkdir -p /srv/prometheus-9; cp /usr/bin/prometheus /usr/bin/promtool /srv/prometheus-9"
    on(machine, "sh", "-c", f"{pack} && tar --create --gzip --file /srv/release.tar.gz -C /srv prometheus-9")
    sha256 = on(machine, "sha256sum", "/srv/release.tar.gz").stdout.split()[0]
    url = "file:///srv/release.tar.gz"
    wrong = converge(only=machine, prometheus_release={"url": url, "sha256": "0" * 64})
    assert "failed=1" in wrong.stdout
    answer = converge(only=machine, prometheus_release={"url": url, "sha256": sha256})
    assert "failed=0" in answer.stdout, answer.stdout + answer.stderr
    pid = on(machine, "systemctl", "show", "--property=MainPID", "--value", "prometheus").stdout.strip()
    program = on(machine, "readlink", f"/proc/{pid}/exe").stdout.strip()
    assert program == f"/opt/prometheus/{sha256[:16]}/prometheus"
    expected = "up"
    assert eventually(lambda: targets(on, machine).get(("node", "exporter")), expected) == expected
    assert changed(converge(only=machine, prometheus_release={"url": url, "sha256": sha256})) == [0]
    # As an unpacking that was cut off leaves it.
    on(machine, "truncate", "--size", "9", f"/opt/prometheus/{sha256[:16]}/promtool")
    assert changed(converge(only=machine, prometheus_release={"url": url, "sha256": sha256})) == [1]
    on(machine, f"/opt/prometheus/{sha256[:16]}/promtool", "--version")
