"""The program that runs the jobs that measure, and what it reads of all_reduce_perf."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from deploy.validate.programs import performance, user
from deploy.validate.programs.performance import Measurements, measured, read_nccl, turns
from tests.unit.validate.clusters import MARKER, NONCE, USER
from tests.unit.validate.measurements import PLAN, all_reduce, loaded

WRITTEN = Path(__file__).parents[1] / "written"


def test_all_reduce_over_eight_ranks() -> None:
    found = read_nccl((WRITTEN / "all_reduce_perf-8-ranks.txt").read_text())
    assert [rank for rank, _, _ in found["ranks"]] == [*range(8)]
    assert found["ranks"][4] == (4, "gpu2", "NVIDIA H100 80GB HBM3")
    assert (found["bandwidth"], found["wrong"], found["links"]) == (185.1, 0, [])


def test_words_of_mpi_between_the_lines() -> None:
    found = read_nccl((WRITTEN / "all_reduce_perf-mpi-noise.txt").read_text())
    assert (len(found["ranks"]), found["bandwidth"], found["wrong"]) == (2, 220.25, 0)


def test_wrong_values_and_an_end_that_is_missing() -> None:
    assert read_nccl(all_reduce("node1", wrong=50)["said"])["wrong"] == 50
    assert read_nccl("# Out of bounds values : 50 FAILED")["wrong"] == 50
    assert read_nccl("NCCL failure")["wrong"] is None
    assert read_nccl(all_reduce("node1")["said"])["links"] == [200.0, 200.0]


@pytest.mark.parametrize("count", [3, 4, 5, 9])
def test_every_pair_has_its_turn_and_no_node_is_in_two_at_once(count: int) -> None:
    nodes = [f"n{number}" for number in range(count)]
    ring = [*zip(nodes, [*nodes[1:], nodes[0]], strict=True)]
    found = [*turns(ring)]
    assert sorted(pair for turn in found for pair in turn) == sorted(ring)
    assert all(len({*sum(turn, ())}) == 2 * len(turn) for turn in found)
    assert len(found) <= 3


class Jobs:
    """A Validation whose jobs answer what the test says."""

    def __init__(self, place: Path, kinds: list[str], nodes: list[str]) -> None:
        self.directory, self.marker, self.is_over = place, MARKER, threading.Event()
        self.trouble: list[str] = []
        self.started: list[list[str]] = []
        self.idle = list(nodes)
        self.states: dict[str, str] = {}
        self.plan: dict[str, Any] = {
            "partition": USER,
            "nodes": nodes,
            "gpus": dict.fromkeys(nodes, 2),
            "kinds": kinds,
            "has_mpi": True,
            "training": "pass",
            "load": "pass",
            "matmul": "pass",
            "performance": {
                **PLAN,
                "gpu_kinds": dict.fromkeys(nodes, "a100x2"),
                "memory_mb": dict.fromkeys(nodes, 1000),
                "port": 20001,
                "burn_in_seconds": 14.0,
            },
        }
        self.speed = 47.0
        self.is_missing = False

    def has(self, kind: str) -> bool:
        return kind in self.plan["kinds"]

    def job_options(self) -> list[str]:
        return [f"--partition={USER}"]

    def each(self, nodes: list[str], what: Any) -> dict[str, Any]:  # noqa: ANN401 - a function
        return {node: what(node) for node in nodes}

    def run(self, argv: list[str], *, seconds: float) -> dict[str, Any]:
        assert seconds > 0
        self.started.append(argv)
        if argv[0] == "sinfo":
            busy = "completing" if len(self.started) == 1 else "mixed"
            lines = [f"{node} {'idle' if node in self.idle else busy}" for node in self.plan["nodes"]]
            return {"code": 0, "seconds": 0.1, "said": "\n".join(lines), "answers": []}
        if argv[0] == "squeue":
            said = "\n".join(f"{job} {state}" for job, state in self.states.items())
            self.states.clear()
            return {"code": 0, "seconds": 0.1, "said": said, "answers": []}
        if self.is_missing:
            return {"code": 127, "seconds": 1.0, "said": "deploy-missing: all_reduce_perf", "answers": []}
        files = [word.partition("=")[2] for word in argv if word.startswith("--nodefile=")]
        one = [word.partition("=")[2] for word in argv if word.startswith("--nodelist=")]
        nodes = Path(files[0]).read_text().split() if files else one
        return all_reduce(*nodes, speed=self.speed if len(nodes) > 1 else 230.0)

    def sbatch(self, *options: str, script: str) -> tuple[str, str]:
        node = options[0].partition("=")[2]
        turn = len([argv for argv in self.started if argv[0] == "sbatch"]) // len(self.idle) + 1
        self.started.append(["sbatch", *options, script])
        if node == "n3":
            return "", "Invalid node name"
        (self.directory / f"burn-{turn}-{node}").write_text(json.dumps(loaded(node)))
        return f"7{len(self.started)}", ""


NODES = ["n1", "n2", "n3"]


def test_all_reduce_alone_together_and_in_pairs_when_that_is_slow(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, ["nccl"], NODES)
    found = measured(jobs, NODES)["nccl"]["a100x2"]
    assert ([*found["alone"]], found["nodes"]) == (NODES, NODES)
    assert len(read_nccl(found["together"]["said"])["ranks"]) == 6
    assert "pairs" not in found
    first, *_, together = jobs.started
    assert {"--exclusive", "--mem=0", "--gres=gpu:2", "--nodelist=n1", "--ntasks=1"} <= {*first}
    assert first[-2:] == ["-g", "2"]
    assert {"--mpi=pmix", "--nodes=3", "--ntasks-per-node=2"} <= {*together}
    assert together[-2:] == ["-g", "1"]
    jobs.speed = 20.0
    assert {*measured(jobs, NODES)["nccl"]["a100x2"]["pairs"]} == {"n1 n2", "n2 n3", "n3 n1"}


def test_a_program_that_is_missing_is_looked_for_once(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, ["nccl", "nvbandwidth", "dcgm", "training"], NODES)
    jobs.is_missing = True
    found = measured(jobs, NODES)
    assert [*found["nvbandwidth"]] == [*found["dcgm"]] == ["n1"]
    assert [*found["nccl"]["a100x2"]["alone"]] == [*found["training"]["a100x2"]["alone"]] == ["n1"]
    assert len(jobs.started) == 4


def test_nothing_is_measured_where_nothing_was_asked_for(tmp_path: Path) -> None:
    assert measured(Jobs(tmp_path, ["probes"], NODES), NODES) == {}


def test_modules_and_images(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, ["dcgm"], ["n1"])
    tools = jobs.plan["performance"]["tools"]
    tools["dcgm"] = {"command": "dcgmi", "modules": ["a b", "c"], "image": "/x.sqsh"}
    command = Measurements(jobs, ["n1"]).command("dcgm", ["diag"])
    assert command[:2] == ["bash", "-lc"]
    assert command[2].startswith("module load 'a b' c || ")
    assert Measurements(jobs, ["n1"]).image("dcgm") == ["--container-image=/x.sqsh"]


def test_the_command_says_when_the_program_is_not_there(tmp_path: Path) -> None:
    validation = user.Validation({"marker": MARKER, "nonce": NONCE, "partition": USER})
    measurements = Measurements(Jobs(tmp_path, [], ["n1"]), ["n1"])
    measurements.asked = {"tools": {"x": {"command": "no-such-program"}, "y": {"command": "echo"}}}
    done = validation.run(measurements.command("x", ["1"]), seconds=20)
    assert (done["code"], done["said"].splitlines()[-1]) == (127, f"{performance.MISSING}: no-such-program")
    assert validation.run(measurements.command("y", ["a b"]), seconds=20)["said"].splitlines()[-1] == "a b"


def test_a_burn_in_goes_in_rounds_over_idle_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = Jobs(tmp_path, ["burn-in"], NODES)
    jobs.idle = ["n1", "n3"]
    clock = iter(range(10_000))
    monkeypatch.setattr("time.time", lambda: next(clock) / 2)
    found = measured(jobs, NODES)["burn_in"]
    assert found["seconds"] == 14
    assert [argv[0] for argv in jobs.started][:3] == ["sinfo", "sinfo", "sbatch"]
    assert {answer["node"] for answer in found["nodes"]["n1"]["rounds"]} == {"n1"}
    assert found["nodes"]["n2"] == {"rounds": [], "jobs": [], "waited": 0}
    assert found["nodes"]["n3"]["rounds"] == []
    assert {*jobs.trouble} == {"burn-in on n3: Invalid node name"}


def test_a_job_of_a_burn_in_that_does_not_begin_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = Jobs(tmp_path, ["burn-in"], ["n1"])
    monkeypatch.setattr(performance, "_TO_BEGIN", -1)
    jobs.states = {"72": "PENDING"}
    nodes: dict[str, dict[str, Any]] = {"n1": {"rounds": [], "jobs": [], "waited": 0}}
    jobs.started.append(["first"])
    Measurements(jobs, ["n1"])._round(1, ["n1"], 20, nodes)
    assert nodes["n1"] == {"rounds": [], "jobs": [], "waited": 1}
    assert ["scancel", "72"] in jobs.started
