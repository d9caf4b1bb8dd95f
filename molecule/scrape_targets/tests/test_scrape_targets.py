"""Prometheus asks whom the files name from the moment they change, without a restart or a reload."""

import functools
import json
import time
from collections.abc import Callable

from molecule.conftest import ASK, MACHINES, Converge, On

JOBS = {
    "prometheus": [{"targets": ["127.0.0.1:9090"], "labels": {"instance": "ctl1"}}],
    "slurm": [{"targets": ["127.0.0.1:9090"], "labels": {"instance": "ctl2"}}],
}


def targets(on: On, machine: str) -> dict[tuple[str, str], str]:
    """Job and instance of every target -> whether it answers."""
    address = "http://127.0.0.1:9090/api/v1/targets?state=active"
    found = json.loads(on(machine, *ASK, address).stdout)["data"]["activeTargets"]
    return {(entry["labels"]["job"], entry["labels"]["instance"]): entry["health"] for entry in found}


def eventually(asked: Callable[[], object], expected: object) -> object:
    """The answer to a question once it is as expected, or what it is after some seconds."""
    deadline = time.monotonic() + 45
    while (answer := asked()) != expected and time.monotonic() < deadline:
        time.sleep(0.5)
    return answer


def test_they_are_asked_by_their_names(on: On, machine: str) -> None:
    expected = {("prometheus", "ctl1"): "up", ("node", "node1"): "down"}
    assert eventually(lambda: targets(on, machine), expected) == expected


def test_changes_need_neither_restart_nor_reload(on: On, converge: Converge) -> None:
    state = ("systemctl", "show", "--property=StateChangeTimestampMonotonic", "prometheus")
    before = [on(machine, *state).stdout for machine in MACHINES]
    assert converge(jobs=JOBS).stdout.count("changed=1") == len(MACHINES)
    expected = {("prometheus", "ctl1"): "up", ("slurm", "ctl2"): "up"}
    for machine in MACHINES:
        assert eventually(functools.partial(targets, on, machine), expected) == expected
        assert on(machine, "ls", "/etc/prometheus/targets").stdout.split() == [
            "prometheus.json",
            "slurm.json",
        ]
    assert [on(machine, *state).stdout for machine in MACHINES] == before
