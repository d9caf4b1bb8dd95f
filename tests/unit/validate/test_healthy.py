"""A healthy cluster passes; what it has not does not count as passed."""

import pytest

from deploy.validate.answers import JOBS
from deploy.validate.catalog import CHECKS, chosen
from deploy.validate.result import Outcome
from tests.unit.judge.statuses import answered, slurm_node
from tests.unit.validate.clusters import (
    BUSY,
    GROUPS,
    HARDWARE,
    NODES,
    Cluster,
    by_outcome,
    outcomes,
    plan,
)
from tests.unit.validate.measurements import measured

ELSEWHERE = {"energy", "mounts", "file-servers", "quotas", "plugins", "portal", "standby"}


def test_a_healthy_cluster_passes_every_check() -> None:
    found = dict(outcomes(Cluster()))
    assert {name for name, outcome in found.items() if outcome is Outcome.NOT_APPLICABLE} == ELSEWHERE
    assert {name for name, outcome in found.items() if outcome is Outcome.PASSED} == found.keys() - ELSEWHERE


def test_nodes_that_are_switched_off_are_slurms_and_are_not_asked() -> None:
    saving = Cluster(away=(NODES[0],))
    for target in saving.watched["prometheus"]["targets"]["data"]:
        if target["instance"] == NODES[0]:
            target |= {"health": "down", "error": "no route to host"}
    for name in ("nodes", "partitions", "node-state", "reachable", "targets"):
        assert not by_outcome(saving.results(name), Outcome.FAILED), name
    assert {result.where for result in saving.results("nodes")} == {*NODES}
    assert NODES[0] not in {result.where for result in saving.results("reachable")}


def test_a_cluster_that_nobody_reached_proves_nothing() -> None:
    lost = Cluster(
        states={},
        looks={},
        credentials={},
        leftovers={},
        admins={},
        surroundings={},
        packets={},
        system={},
        jobs=None,
        monitoring=None,
    )
    lost.silent[JOBS, "login1"] = "No route to host"
    found = dict(outcomes(lost))
    assert {name for name, outcome in found.items() if outcome is Outcome.FAILED} == {
        "reachable",
        "controllers",
        "accounting-daemon",
        "job",
    }
    assert not {name for name, outcome in found.items() if outcome is Outcome.PASSED}
    assert by_outcome(lost.results("job"), Outcome.FAILED) == {
        "login1": "the jobs could not be run: No route to host"
    }


def test_a_cluster_before_its_first_deployment_gets_clear_verdicts() -> None:
    bare = Cluster(contract={}, credentials={}, jobs=None, leftovers={})
    for look in bare.looks.values():
        look["configuration"] = {"directory": None, "hashes": {}, "plugins": [], "server": ""}
        look["credential"] = ""
    why = "unmunge: No such file or directory"
    bare.credentials = {name: {"undecoded": dict.fromkeys(bare.looks, why)} for name in bare.looks}
    for what in bare.looks["ctl1"]["slurm"]:
        bare.looks["ctl1"]["slurm"][what] = {
            "code": None,
            "out": "",
            "why": "scontrol: No such file or directory",
        }
    bare.silent[JOBS, "login1"] = "runuser: user deploy-validate does not exist"
    found = dict(outcomes(bare))
    assert {name for name, outcome in found.items() if outcome is Outcome.FAILED} >= {
        "configuration",
        "controllers",
        "accounting-daemon",
        "munge",
        "job",
    }
    assert {
        found[name] for name in ("nodes", "partitions", "qos", "associations", "gpu-binding", "array")
    } == {Outcome.NOT_MEASURED}
    assert by_outcome(bare.results("configuration"), Outcome.FAILED) == dict.fromkeys(
        bare.looks, "there is no slurm.conf"
    )
    assert by_outcome(bare.results("controllers"), Outcome.FAILED) == {
        "ctl1": "scontrol ping: scontrol: No such file or directory"
    }


@pytest.mark.parametrize(
    "name", [check.name for check in CHECKS if check.kinds and check.name not in {"job", "portal"}]
)
def test_without_jobs_nothing_is_said_of_jobs(name: str) -> None:
    without = Cluster(jobs=None, leftovers={})
    (result,) = without.results(name) or (None,)
    assert result is None or result.outcome is Outcome.NOT_MEASURED


def test_nodes_that_users_occupy_are_not_measured() -> None:
    busy = Cluster()
    busy.says("nodes", "State=IDLE", "State=MIXED+PLANNED")
    for node in NODES:
        for kind in ("probes", "memory", "container", "all_gpus"):
            busy.done[kind][node] = BUSY
        busy.done["single"][node] = [BUSY, BUSY]
    for name in ("job", "memory-limit", "containers", "gpu-binding"):
        assert by_outcome(busy.results(name), Outcome.NOT_MEASURED) == dict.fromkeys(
            NODES, "its resources belong to jobs of users at the moment"
        )
    busy.done["mpi"] = {**BUSY, "expected": 4}
    assert dict(outcomes(busy))["speed"] is Outcome.NOT_MEASURED
    assert dict(outcomes(busy))["mpi"] is Outcome.NOT_MEASURED


def test_a_free_node_that_slurm_calls_busy_failed() -> None:
    odd = Cluster()
    odd.done["probes"]["node1"] = BUSY
    assert "Requested nodes are busy" in by_outcome(odd.results("job"), Outcome.FAILED)["node1"]
    odd.done["mpi"] = {**BUSY, "expected": 4}
    assert dict(outcomes(odd))["mpi"] is Outcome.FAILED


def test_a_site_of_one_machine() -> None:
    groups: dict[str, tuple[str, ...]] = {name: ("node1",) for name in GROUPS if name != "slurm-login"}
    one = Cluster(groups=groups, contract={"node1": HARDWARE}, leftovers={"node1": {"leftovers": []}})
    one.states = {"node1": answered("node1", shortfalls=[], slurm={"nodes": {"node1": slurm_node()}})}
    one.looks = {"node1": one.looks["ctl1"] | {"addresses": {"node1": ["10.0.0.11"]}}}
    one.credentials = {"node1": {"undecoded": {}}}
    one.admins = {}
    one.surroundings = {"node1": one.surroundings["node1"]}
    one.packets = {}
    one.system = {"node1": one.system["node1"]}
    one.watched["doors"] = {"node1": ""}
    for target in one.watched["prometheus"]["targets"]["data"]:
        target["instance"] = "node1"
    for what, old, new in (
        ("ping", "ctl1", "node1"),
        ("nodes", "NodeName=node2", "NodeName=node1"),
        ("partitions", "node[1-2]", "node1"),
    ):
        answer = one.looks["node1"]["slurm"][what]
        answer["out"] = answer["out"].replace(old, new)
    for kind in ("probes", "shared", "memory", "single", "all_gpus", "ssh", "container"):
        del one.done[kind]["node2"]
    del one.done["together"]["answers"][1]
    one.done.update(measured(("node1",)))
    for kind in ("nccl", "training"):
        del one.done[kind]["a100x2"]["together"]
    one.plan = {**plan(), "nodes": ["node1"], "gpus": {"node1": 2}, "ssh_nodes": [], "container_nodes": []}
    found = dict(outcomes(one))
    assert {name for name, outcome in found.items() if outcome is Outcome.NOT_APPLICABLE} == {
        *ELSEWHERE,
        "packets",
        "ssh-gate",
        "containers",
        "admin-logins",
    }
    assert Outcome.FAILED not in found.values()
    assert Outcome.NOT_MEASURED not in found.values()


def test_the_choice_of_checks() -> None:
    assert chosen([], []) == CHECKS
    assert [check.name for check in chosen(["munge", "clock"], ["clock"])] == ["munge"]
