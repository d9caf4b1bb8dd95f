"""The configuration of the throwaway Slurm, what is typed there, and what is made of its answers."""

from pathlib import Path
from typing import Any

import pytest

from deploy.run.throwaway_slurm import World, pretended, reason_in, words_of

CONF = """\
# A comment.
SlurmctldHost=ctl1(10.0.0.1)
SlurmctldHost=ctl2(10.0.0.2)
AccountingStorageHost=ctl1
AccountingStorageEnforce=associations,limits
StateSaveLocation=/var/spool/slurmctld
PrologSlurmctld=/root/prolog
HealthCheckProgram=/usr/sbin/check
JobSubmitPlugins=lua
CliFilterPlugins=lua
NodeName=node1 NodeAddr=10.0.0.3 CPUs=4 State=UNKNOWN
NodeName=node2 CPUs=4 State=DRAIN
NodeName=node3 CPUs=4 State=FUTURE
PartitionName=batch Nodes=ALL QOS=part State=UP
"""
SHAPE: dict[str, Any] = {
    "partition": "gpu",
    "account": "vision",
    "qos": "",
    "constraint": "",
    "minutes": 90,
    "nodes": 2,
    "cpus": 8,
    "memory_mb": 3001,
    "gres": {"gpu:a100": 4},
    "licenses": {"matlab": 2},
    "tasks": 0,
    "highest_task": 0,
}


def test_its_controller_is_alone_has_a_state_of_its_own_and_nodes_without_slurmd() -> None:
    lines = pretended(CONF, "/place", "ctl1").splitlines()
    assert [line for line in lines if line.startswith("SlurmctldHost")] == ["SlurmctldHost=ctl1(192.0.2.1)"]
    assert [line.split()[-1] for line in lines if line.startswith("NodeName")] == [
        "State=CLOUD",
        "State=CLOUD",
        "State=FUTURE",
    ]
    assert not [line for line in lines if "/var/spool" in line or "/root/" in line or "/usr/sbin" in line]
    # Accounting does not know what was typed.
    assert not [line for line in lines if line.startswith("CliFilterPlugins")]
    # What decides about jobs stays.
    for line in ("AccountingStorageEnforce=associations,limits", "JobSubmitPlugins=lua"):
        assert line in lines
    assert "PartitionName=batch Nodes=ALL QOS=part State=UP" in lines
    assert "StateSaveLocation=/place/state" in lines


def test_a_request_is_asked_for_as_a_user_would() -> None:
    assert words_of(SHAPE) == [
        *("--nodes=2", "--ntasks=8", "--partition=gpu", "--account=vision", "--time=90", "--mem=1501M"),
        *("--gres=gpu:a100:2", "--licenses=matlab:2"),
    ]


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ({"gres": {"gpu": 3}}, "--gpus=3"),
        ({"gres": {"gpu:a100": 3}}, "--gpus=a100:3"),
        ({"gres": {"shard": 3}}, "--gres=shard:2"),
        ({"tasks": 1, "highest_task": 4}, "--array=4"),
        ({"tasks": 3, "highest_task": 90}, "--array=0-1,90"),
        ({"cpus": 1}, "--ntasks=2"),
    ],
)
def test_what_does_not_divide_evenly(said: dict[str, Any], word: str) -> None:
    assert word in words_of(SHAPE | said)


def test_a_request_without_a_limit_takes_the_partitions() -> None:
    words = words_of(SHAPE | {"minutes": None, "memory_mb": 0, "licenses": {}})
    assert not [word for word in words if word.startswith(("--time", "--mem", "--licenses"))]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "sbatch: error: too much\nallocation failure: Requested time limit is invalid\n",
            "too much; Requested time limit is invalid",
        ),
        ("sbatch: error: no\nsbatch: error: no\n", "no"),
        ("srun: error: Unable to allocate resources: Invalid account\n", "Invalid account"),
        ("", "refused without a word"),
    ],
)
def test_reasons_are_slurms_own_words(said: str, reason: str) -> None:
    assert reason_in(said) == reason


class Fake(World):
    """A throwaway Slurm whose QOS refuses two nodes where it has DenyOnLimit, and three in any case."""

    def __init__(self) -> None:
        super().__init__(Path("/nowhere"), "slurm_acct_db")
        self.typed: list[str] = []
        self.denies = False

    def _must(self, command: list[str], _text: str | None = None) -> str:
        self.typed.append(command[-1])
        if "flags" in command[-1] and "set" in command:
            self.denies = "+=" in command[-1]
        return "normal|\nstrict|DenyOnLimit\n"

    def _try(self, shape: dict[str, Any]) -> list[Any]:
        if shape["nodes"] > 2 or (shape["nodes"] == 2 and self.denies):
            return ["refused", "violates accounting/QOS policy", True]
        return ["accepted", "", False]

    def _limit(self, shape: dict[str, Any]) -> str:
        return f"limit of {shape['nodes']}"


def test_what_only_a_limit_keeps_from_starting_waits() -> None:
    world = Fake()
    shapes = [SHAPE | {"nodes": count} for count in (1, 2, 3, 2)]
    assert world.judge(shapes, lambda place: place != 3) == [
        ["accepted", ""],
        ["waits", "limit of 2"],
        ["refused", "limit of 3"],
        ["refused", "violates accounting/QOS policy"],
    ]
    # Flags are as they were: the next configuration starts from them.
    assert not world.denies
    assert world.typed[1:] == ["flags+=DenyOnLimit", "flags-=DenyOnLimit"]
