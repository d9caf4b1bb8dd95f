from typing import Any

import pytest

from deploy.validate.result import Outcome
from tests.unit.validate.clusters import BUSY, NODES, Change, Cluster, by_outcome, expect_fault, run
from tests.unit.validate.measurements import all_reduce, bandwidths, diagnostics, trained

MISSING = run(
    code=127, said="deploy-link: 200 Gb/sec\ndeploy-missing: the-program\nsrun: error: node1: task 0: 127\n"
)
KIND = "a100x2"


def _alone(kind: str, node: str, what: dict[str, Any]) -> Change:
    return lambda cluster: cluster.done[kind][KIND]["alone"].update({node: what})


def _whole(kind: str, what: dict[str, Any]) -> Change:
    return lambda cluster: cluster.done[kind][KIND].update(what)


def _on(kind: str, node: str, what: dict[str, Any]) -> Change:
    return lambda cluster: cluster.done[kind].update({node: what})


RANKLESS = "srun: error: node1: task 0: Exited\nmisc/socket.cc:50 NCCL WARN no interface\nsrun: error: x\n"
UNFINISHED = {
    **all_reduce("node1"),
    "code": 1,
    "said": all_reduce("node1")["said"].split("# Out")[0] + "\nNCCL WARN x",
}
FAULTS: dict[str, tuple[str, Change, dict[str, str]]] = {
    "ranks are missing": (
        "nccl",
        _alone("nccl", "node1", all_reduce("node1", gpus=1)),
        {"node1": "within the node: 1 of 2 ranks"},
    ),
    "values are wrong": (
        "nccl",
        _alone("nccl", "node2", all_reduce("node2", wrong=3)),
        {"node2": "within the node: 3 wrong values"},
    ),
    "it does not begin": (
        "nccl",
        _alone("nccl", "node1", run(code=1, said=RANKLESS)),
        {"node1": "within the node: misc/socket.cc:50 NCCL WARN no interface"},
    ),
    "it does not come to its end": (
        "nccl",
        _alone("nccl", "node1", UNFINISHED),
        {"node1": "within the node: it did not come to its end: NCCL WARN x"},
    ),
    "over all nodes ranks are missing": (
        "nccl",
        _whole("nccl", {"together": all_reduce("node1")}),
        {"": "over 2 nodes: 2 of 4 ranks"},
    ),
    "it was built without MPI": (
        "nccl",
        _whole("nccl", {"together": run(said=all_reduce("node1", gpus=1)["said"] * 4)}),
        {"": "over 2 nodes: 1 of 4 ranks: it was built without MPI"},
    ),
    "a node's links are slow": (
        "nccl-bandwidth",
        _alone("nccl", "node1", all_reduce("node1", speed=120.0)),
        {"node1": "120 GB/s within the node"},
    ),
    "the fabric is slow": (
        "nccl-bandwidth",
        _whole("nccl", {"together": all_reduce(*NODES, speed=20.0)}),
        {"": "20 GB/s over 2 nodes"},
    ),
    "a copy fails": (
        "nvbandwidth",
        _on("nvbandwidth", "node1", run(said='{"nvbandwidth": {"error": "No devices found"}}')),
        {"node1": "No devices found"},
    ),
    "nvbandwidth does not start": (
        "nvbandwidth",
        _on("nvbandwidth", "node2", run(code=1, said="libcuda.so.1: cannot open")),
        {"node2": "libcuda.so.1: cannot open"},
    ),
    "diagnostics fail": (
        "dcgm",
        _on("dcgm", "node2", diagnostics("Fail", "Persistence mode for GPU 1 is disabled.")),
        {"node2": "software, GPU 1: Persistence mode for GPU 1 is disabled."},
    ),
    "DCGM's daemon is away": (
        "dcgm",
        _on("dcgm", "node1", run(code=1, said="Error: unable to establish a connection to the host engine")),
        {"node1": "no test passed: Error: unable to establish a connection to the host engine"},
    ),
    "a rank of the training is missing": (
        "training",
        _alone("training", "node1", {**trained("node1"), "answers": trained("node1")["answers"][:1]}),
        {"node1": "on the node alone: 1 of 2 ranks answered"},
    ),
    "the weights differ": (
        "training",
        _alone("training", "node2", trained("node2", is_same=False)),
        {"node2": "on the node alone: the ranks ended with different weights"},
    ),
    "nothing is learnt": (
        "training",
        _alone("training", "node2", trained("node2", losses=[1.0, float("nan")])),
        {"node2": "on the node alone: the loss did not become less"},
    ),
    "a node is silent when all train": (
        "training",
        _whole("training", {"together": trained("node1")}),
        {"": "on 2 nodes: 2 of 4 ranks answered; nothing from node2"},
    ),
    "the sum is wrong": (
        "training",
        _whole("training", {"together": trained(*NODES, ranks=3)}),
        {"": "on 2 nodes: a sum over all ranks is 3, not 4"},
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(fault: str) -> None:
    check, change, messages = FAULTS[fault]
    expect_fault(check, change, messages, "")


CHECKS = ("nccl", "nccl-bandwidth", "nvbandwidth", "dcgm", "training")


@pytest.mark.parametrize("check", CHECKS)
def test_a_site_without_the_program(check: str) -> None:
    cluster = Cluster()
    for kind in ("nccl", "training"):
        cluster.done[kind][KIND] = {"alone": {"node1": MISSING}, "nodes": [], "tasks": 2}
    for kind in ("nvbandwidth", "dcgm"):
        cluster.done[kind] = {"node1": MISSING}
    (result,) = cluster.results(check)
    assert result.outcome is Outcome.NOT_APPLICABLE
    assert result.message.startswith("node1 has no the-program: install ")


@pytest.mark.parametrize("check", CHECKS)
def test_nodes_of_users_are_not_measured(check: str) -> None:
    cluster = Cluster()
    cluster.says("nodes", "State=IDLE", "State=MIXED")
    for kind in ("nccl", "training"):
        cluster.done[kind][KIND] = {"alone": dict.fromkeys(NODES, BUSY), "nodes": [], "tasks": 2}
    for kind in ("nvbandwidth", "dcgm"):
        cluster.done[kind] = dict.fromkeys(NODES, BUSY)
    assert {*by_outcome(cluster.results(check), Outcome.NOT_MEASURED)} == {*NODES}


def test_a_node_with_one_cpu_trains_nothing() -> None:
    cluster = Cluster()
    cluster.says("nodes", "CPUTot=4", "CPUTot=1")
    refused = {**MISSING, "code": 1, "said": "srun: error: Requested node configuration is not available"}
    cluster.done["training"][KIND] = {"alone": dict.fromkeys(NODES, refused), "nodes": [], "tasks": 2}
    found = by_outcome(cluster.results("training"), Outcome.NOT_MEASURED)
    assert found == dict.fromkeys(NODES, "2 ranks have no room on its CPUs (1)")


@pytest.mark.parametrize("check", CHECKS[:-1])
def test_a_site_without_gpus(check: str) -> None:
    cluster = Cluster()
    assert cluster.plan
    cluster.plan["gpus"] = {}
    assert by_outcome(cluster.results(check), Outcome.NOT_APPLICABLE) == {"": "no node has GPUs"}
    cluster.plan["divided"] = ["node1"]
    assert by_outcome(cluster.results(check), Outcome.NOT_MEASURED) == {"": "GPUs are divided (MIG)"}


@pytest.mark.parametrize("check", CHECKS)
def test_what_was_left_out_is_not_measured(check: str) -> None:
    cluster = Cluster()
    assert cluster.plan
    cluster.plan["kinds"] = ["probes"]
    (result,) = cluster.results(check)
    assert result.outcome is Outcome.NOT_MEASURED
    assert "--quick" in result.message


def test_the_slow_node_is_named_by_its_pairs() -> None:
    nodes = ("node1", "node2", "node3", "node4")
    pairs = {
        f"{a} {b}": all_reduce(a, b, speed=12.0 if "node3" in (a, b) else 47.0)
        for a, b in zip(nodes, (*nodes[1:], nodes[0]), strict=True)
    }
    cluster = Cluster()
    assert cluster.plan
    cluster.plan["gpus"] = dict.fromkeys(nodes, 2)
    cluster.done["nccl"][KIND] = {
        "alone": {node: all_reduce(node) for node in nodes},
        "nodes": list(nodes),
        "together": all_reduce(*nodes, speed=13.0),
        "pairs": pairs,
    }
    assert by_outcome(cluster.results("nccl-bandwidth"), Outcome.FAILED) == {
        "": "13 GB/s over 4 nodes; slow in pairs: node3",
        "node3": "12 GB/s with a neighbour",
    }
    broken = {name: all_reduce(*name.split(), wrong=int("node3" in name)) for name in pairs}
    cluster.done["nccl"][KIND] |= {"together": all_reduce(*nodes, wrong=9), "pairs": broken}
    assert by_outcome(cluster.results("nccl"), Outcome.FAILED) == {
        "node3": "over 4 nodes: 9 wrong values; in pairs it fails with node3"
    }


def test_all_pairs_are_fast_enough() -> None:
    cluster = Cluster()
    pairs = {"node1 node2": all_reduce(*NODES, speed=47.0)}
    cluster.done["nccl"][KIND] |= {"together": all_reduce(*NODES, speed=13.0), "pairs": pairs}
    (result,) = [v for v in cluster.results("nccl-bandwidth") if v.outcome is Outcome.FAILED]
    assert (result.where, "switches" in result.hint) == ("", True)


def test_without_a_figure_the_site_is_asked_for_one() -> None:
    cluster = Cluster()
    assert cluster.plan
    cluster.plan["performance"] = {**cluster.plan["performance"], "expected": [], "ports": {}}
    found = by_outcome(cluster.results("nccl-bandwidth"), Outcome.NOT_MEASURED)
    assert found.keys() == {"node1", "node2", ""}
    assert "{gpu: NVIDIA A100-SXM4-80GB, gpus: 2, fabric: 2x200, gb_per_s: …}" in found[""]


def test_a_copy_slower_than_all_others_is_found() -> None:
    nodes = ("node1", "node2", "node3")
    cluster = Cluster()
    cluster.contract = dict.fromkeys(nodes, cluster.contract["node1"])
    cluster.done["nvbandwidth"] = {
        "node1": bandwidths(),
        "node2": bandwidths((25.0, 12.4)),
        "node3": bandwidths((25.3, 25.1)),
    }
    assert by_outcome(cluster.results("nvbandwidth"), Outcome.FAILED) == {
        "node2": "host_to_device_memcpy_ce of GPU 1: 12.4 GB/s, others >= 22.6"
    }


def test_nodes_that_were_not_free_at_once() -> None:
    cluster = Cluster()
    for kind in ("nccl", "training"):
        cluster.done[kind][KIND]["together"] = BUSY
        found = by_outcome(cluster.results(kind), Outcome.NOT_MEASURED)
        assert found == {"": "the nodes were not free at the same time"}
