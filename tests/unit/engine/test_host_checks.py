"""The checks of a validation that one host passes or fails, with a controller beside it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploy.engine import validation as module
from deploy.engine.validation import failing_checks
from deploy.run.events import Ending, Event
from deploy.run.execute import Execution, RunRequest
from deploy.validate import answers
from deploy.validate.catalog import CHECKS
from deploy.validate.result import Outcome
from tests.unit.engine.machines import run_on
from tests.unit.show.runs import ended, result, stats
from tests.unit.validate.clusters import Change, Cluster, outcomes, site

ASKED = ("ctl1", "node1")


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, tuple[str, ...]]]:
    """What a node fails that is asked with its controller, where the cluster is otherwise well."""

    def of(change: Change = lambda _: None) -> dict[str, tuple[str, ...]]:
        cluster = Cluster()
        change(cluster)
        steps: dict[str, dict[str, Any]] = {
            answers.LOOK: cluster.looks,
            answers.SURROUNDINGS: cluster.surroundings,
            answers.PACKETS: cluster.packets,
            answers.CREDENTIALS: cluster.credentials,
            answers.ADMINS: cluster.admins,
        }

        def execute(_: RunRequest, on_event: Callable[[Event], None], *__: object) -> Execution:
            for name in ASKED:
                on_event(replace(cluster.states[name], step=answers.STATE))
                for step, said in steps.items():
                    if name in said:
                        on_event(replace(result(name), step=step, answer=said[name]))
            on_event(stats())
            on_event(ended(rc=0))
            return Execution(0, Ending.FINISHED)

        monkeypatch.setattr(module, "execute", execute)
        monkeypatch.setattr(module, "read_contract", lambda _: cluster.contract)
        made = replace(site(), inventory=tmp_path / "inventory.ini")
        return failing_checks(run_on(made, place=tmp_path), ["node1"])

    return of


def test_a_node_that_is_well_fails_nothing(failing: Callable[..., dict[str, tuple[str, ...]]]) -> None:
    assert failing() == {}


def test_what_it_fails_is_said_with_the_name_of_the_check(
    failing: Callable[..., dict[str, tuple[str, ...]]],
) -> None:
    def full(cluster: Cluster) -> None:
        cluster.looks["node1"]["space"]["/tmp"] = [1, 100, 50, 100]
        cluster.looks["node2"]["space"]["/tmp"] = [1, 100, 50, 100]
        cluster.says("nodes", "NodeName=node1 Arch=x86_64 CPUTot=4", "NodeName=node1 Arch=x86_64 CPUTot=2")

    assert failing(full) == {
        "node1": (
            "check space: /tmp has 1.0 % of its space free",
            "check nodes: Slurm has 2 CPUs, the contract 4",
        )
    }


def test_a_node_that_does_not_answer_fails(failing: Callable[..., dict[str, tuple[str, ...]]]) -> None:
    def silent(cluster: Cluster) -> None:
        for said in (cluster.looks, cluster.surroundings, cluster.packets, cluster.credentials):
            del said["node1"]
        cluster.states["node1"] = replace(cluster.states["node1"], answer=None, message="no route")

    (said,) = failing(silent)["node1"]
    assert said.startswith("check reachable: ")


def test_those_checks_need_neither_a_job_nor_the_monitoring() -> None:
    cluster = Cluster(jobs=None, monitoring=None)
    found = dict(outcomes(cluster))
    for check in CHECKS:
        if check.of_a_host:
            assert not check.kinds
            assert found[check.name] in {Outcome.PASSED, Outcome.NOT_APPLICABLE}, check.name
