"""What the jobs that measure say on a healthy cluster, in the formats of the programs."""

import json
from typing import Any

from deploy.validate.thresholds import Thresholds

GPU = "NVIDIA A100-SXM4-80GB"
PLAN = {
    **Thresholds().benchmarks.plan(90.0),
    "expected": [
        {"gpu": "A100", "gpus": 2, "fabric": "node", "gb_per_s": 200.0},
        {"gpu": "A100", "gpus": 2, "fabric": "2x200", "gb_per_s": 48.0},
    ],
}


def all_reduce(
    *nodes: str, gpus: int = 2, speed: float = 230.0, wrong: int = 0, links: int = 2
) -> dict[str, Any]:
    """A run of all_reduce_perf."""
    ranks = [(node, gpu) for node in nodes for gpu in range(gpus)]
    lines = ["deploy-link: 200 Gb/sec (4X HDR)"] * (links * len(nodes))
    lines += [
        f"#  Rank {number:2} Group  0 Pid {4000 + number:6} on {node:>10} device {gpu:2} [0x07] {GPU}"
        for number, (node, gpu) in enumerate(ranks)
    ]
    lines.append(
        f"  4294967296    1073741824     float     sum      -1    32336  132.82  {speed}      {wrong}"
        f"    32455  132.34  {speed - 1}      0"
    )
    lines += [
        f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}",
        "# Avg bus bandwidth    : 66.2058",
    ]
    return _run("\n".join(lines))


def bandwidths(to_device: tuple[float, ...] = (25.1, 25.2)) -> dict[str, Any]:
    """A run of nvbandwidth on a node with two GPUs."""
    contexts = [
        _case("host_to_device_memcpy_ce", [[f"{figure}" for figure in to_device]]),
        _case("device_to_device_memcpy_read_ce", [["N/A", "270.1"], ["270.3", "N/A"]]),
    ]
    return _run(json.dumps({"nvbandwidth": {"testcases": contexts}}))


def _case(name: str, matrix: list[list[str]]) -> dict[str, Any]:
    return {"name": name, "status": "Passed", "bandwidth_matrix": matrix}


def diagnostics(status: str = "Pass", warning: str = "") -> dict[str, Any]:
    """A run of dcgmi diag, as DCGM 4 answers."""
    result: dict[str, Any] = {"entity_group": "GPU", "entity_id": 1, "status": status}
    if warning:
        result["warnings"] = [{"error_category": 8, "error_id": 29, "error_severity": 5, "warning": warning}]
    tests = [
        {
            "name": "software",
            "results": [{**result, "entity_id": 0, "status": "Pass", "warnings": []}, result],
        }
    ]
    document = {"DCGM Diagnostic": {"test_categories": [{"category": "Deployment", "tests": tests}]}}
    return _run(json.dumps(document), code=0 if status == "Pass" else 226)


def trained(*nodes: str, **changes: object) -> dict[str, Any]:
    """A run of programs/training.py with two ranks on each node."""
    places = [node for node in nodes for _ in range(2)]
    answers = [
        {
            "rank": rank,
            "ranks": len(places),
            "node": node,
            "backend": "nccl",
            "torch": "2.9.1",
            "gpu": GPU,
            "is_same": True,
            "losses": [16.0, 0.5],
            **changes,
        }
        for rank, node in enumerate(places)
    ]
    return {**_run(""), "answers": answers}


def loaded(node: str, job: int = 90, **changes: object) -> dict[str, Any]:
    """What programs/load.py says of an hour."""
    gpu = {"missing": False, "rate": 250.0, "rounds": 9000, "wrong": [], "name": GPU}
    line = ["0", "0", "Not Active", "Not Active", "Not Active", "Not Active", "60"]
    return {
        "node": node,
        "job": str(job),
        "seconds": 3590.0,
        "cpu": {"what": "HPL", "unit": "GFLOP/s", "rate": 2000.0, "rounds": 40, "wrong": []},
        "gpus": [{**gpu, "gpu": index} for index in (0, 1)],
        "counted": {"throttled": 0, "memory errors": 0, "memory errors corrected": 0},
        "samples": [[["0", *line], ["1", *line]]] * 2,
        **changes,
    }


def measured(nodes: tuple[str, ...]) -> dict[str, Any]:
    """Everything that was measured."""
    return {
        "nccl": {
            "a100x2": {
                "alone": {node: all_reduce(node) for node in nodes},
                "nodes": list(nodes),
                "together": all_reduce(*nodes, speed=47.0),
            }
        },
        "nvbandwidth": {node: bandwidths() for node in nodes},
        "dcgm": {node: diagnostics() for node in nodes},
        "training": {
            "a100x2": {
                "alone": {node: trained(node) for node in nodes},
                "together": trained(*nodes),
                "tasks": 2,
                "nodes": list(nodes),
            }
        },
        "burn_in": {
            "seconds": 3600.0,
            "took": 3600.0,
            "nodes": {node: {"rounds": [loaded(node)], "jobs": ["90"], "waited": 0} for node in nodes},
        },
    }


def _run(said: str, code: int = 0) -> dict[str, Any]:
    return {"code": code, "seconds": 9.0, "said": said, "answers": []}
