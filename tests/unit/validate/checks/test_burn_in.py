from typing import Any

import pytest

from deploy.validate.result import Outcome
from tests.unit.validate.clusters import Change, Cluster, by_outcome, expect_fault
from tests.unit.validate.measurements import loaded

IDLE = ["0", "0", "Not Active", "Not Active", "Not Active", "Not Active", "60"]


def _rounds(*rounds: dict[str, Any]) -> Change:
    return lambda cluster: cluster.done["burn_in"]["nodes"]["node1"].update(rounds=[*rounds])


def _cpu(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - as JSON has it
    return loaded("node1", cpu={**loaded("node1")["cpu"], **changes})


def _gpu(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - as JSON has it
    first, second = loaded("node1")["gpus"]
    return loaded("node1", gpus=[first, {**second, **changes}])


def _seen(place: int, word: str) -> dict[str, Any]:
    later = [*IDLE]
    later[place] = word
    return loaded("node1", samples=[[["0", *IDLE], ["1", *IDLE]], [["0", *IDLE], ["1", *later]]])


FAULTS: dict[str, tuple[Change, str]] = {
    "a wrong residual": (
        _rounds(_cpu(wrong=["HPL's residual is too large (N=9600)"])),
        "HPL's residual is too large (N=9600)",
    ),
    "a wrong product": (_rounds(_gpu(wrong=["product 40 differs"])), "GPU 1: product 40 differs"),
    "a lost round": (_rounds({"job": "90", "lost": "No such file"}), "job 90 ended without an answer"),
    "heat": (
        _rounds(loaded("node1", counted={"throttled": 7})),
        "cores were throttled 7 times for their heat",
    ),
    "memory errors": (
        _rounds(loaded("node1", counted={"memory errors": 1})),
        "1 memory errors that were not corrected",
    ),
    "corrected memory errors": (
        _rounds(loaded("node1", counted={"memory errors corrected": 3})),
        "3 memory errors that were corrected",
    ),
    "ECC": (_rounds(_seen(0, "2")), "GPU 1: 2 ECC errors"),
    "corrected ECC": (_rounds(_seen(1, "5")), "GPU 1: 5 corrected ECC errors"),
    "a hot GPU": (_rounds(_seen(3, "Active")), "GPU 1: clocks held down, thermal slowdown (hardware)"),
    "an Xid": (
        lambda cluster: cluster.complaints.update(node1={"lines": ["NVRM: Xid 79"], "count": 2, "why": ""}),
        "its kernel, 2 times: NVRM: Xid 79",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(fault: str) -> None:
    change, message = FAULTS[fault]
    expect_fault("burn-in", change, {"node1": message}, "journalctl")


UNMEASURED: dict[str, tuple[Change, str]] = {
    "users have it": (_rounds(), "it was never idle: jobs of users have it"),
    "users took it": (
        _rounds(loaded("node1", seconds=600.0)),
        "0.17 of 1.00 hours, without a fault; then jobs of users had it",
    ),
    "too short": (_rounds(_cpu(rounds=0, rate=0.0)), "no piece of work was finished; give it more time"),
    "no torch": (
        _rounds(_gpu(missing=True, rate=0)),
        "1 GPUs had nothing to do, there is no torch with CUDA",
    ),
}


@pytest.mark.parametrize("reason", UNMEASURED)
def test_what_was_not_measured_does_not_pass(reason: str) -> None:
    change, message = UNMEASURED[reason]
    cluster = Cluster()
    change(cluster)
    found = by_outcome(cluster.results("burn-in"), Outcome.NOT_MEASURED)
    assert found.keys() == {"node1"}
    assert message in found["node1"]


def test_it_must_be_asked_for() -> None:
    cluster = Cluster()
    del cluster.done["burn_in"]
    assert by_outcome(cluster.results("burn-in"), Outcome.NOT_MEASURED) == {
        "": "not asked for: --burn-in HOURS"
    }


def test_a_node_slower_than_its_like_is_found_and_one_of_another_type_is_not() -> None:
    cluster = Cluster()
    nodes = [f"node{number}" for number in range(1, 9)]
    cluster.contract = dict.fromkeys(nodes, cluster.contract["node1"]) | {"node8": {"cpus": 2}}
    rates = dict.fromkeys(nodes, 2000.0) | {"node3": 1700.0, "node8": 300.0, "node4": 1950.0}
    hpl = loaded("node1")["cpu"]
    cluster.done["burn_in"]["nodes"] = {
        node: {"rounds": [loaded(node, cpu={**hpl, "rate": rates[node]})], "jobs": [], "waited": 0}
        for node in nodes
    }
    cluster.complaints = {node: {"lines": [], "count": 0, "why": ""} for node in nodes}
    found = cluster.results("burn-in")
    assert by_outcome(found, Outcome.FAILED) == {"node3": "HPL: 1700 GFLOP/s, others of its type >= 1800"}
    assert len(by_outcome(found, Outcome.PASSED)) == 7


def test_one_slow_gpu_among_all_of_a_type_is_found() -> None:
    cluster = Cluster()
    nodes = ("node1", "node2", "node3")
    cluster.contract = dict.fromkeys(nodes, cluster.contract["node1"])
    records: dict[str, Any] = {node: {"rounds": [loaded(node)], "jobs": [], "waited": 0} for node in nodes}
    records["node2"]["rounds"][0]["gpus"][1]["rate"] = 200.0
    cluster.done["burn_in"]["nodes"] = records
    assert by_outcome(cluster.results("burn-in"), Outcome.FAILED) == {
        "node2": "GPU 1: 200 TFLOP/s, others of its type >= 225"
    }


def test_a_kernel_that_was_not_asked_is_said() -> None:
    cluster = Cluster(complaints={"node1": {"lines": [], "count": 0, "why": "no journal"}})
    found = by_outcome(cluster.results("burn-in"), Outcome.PASSED)
    assert found["node1"].endswith("every result right (its kernel's log was not read: no journal)")
    assert found["node2"].endswith("(its kernel's log was not read: it could not be asked)")
    assert "HPL 2000 GFLOP/s, GPU 0 250 TFLOP/s" in found["node1"]


def test_why_a_node_was_not_loaded() -> None:
    cluster = Cluster()
    nodes = cluster.done["burn_in"]["nodes"]
    nodes["node1"] = {"rounds": [], "jobs": [], "waited": 1}
    nodes["node2"] = {"rounds": [], "jobs": [], "waited": 0}
    cluster.done["trouble"] = ["sbatch: other", "burn-in on node2: Invalid account"]
    assert by_outcome(cluster.results("burn-in"), Outcome.NOT_MEASURED) == {
        "node1": "it was idle, but its job did not begin within a minute",
        "node2": "burn-in on node2: Invalid account",
    }
