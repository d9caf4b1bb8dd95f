from pathlib import Path

import pytest

from deploy.run import slurm_look

NODES = """\
NodeName=node1 Arch=x86_64 State=MIXED+DRAIN Version=26.05.5 Reason=deploy: x [root@2026-11-25T02:00:00]
NodeName=node2 Arch=x86_64 State=DOWN*+NOT_RESPONDING ThreadsPerCore=1 Version=24.11.5
"""
QUEUE = "12_3 alice RUNNING 0\n13 deploy-validate PENDING 0\n14 bob PENDING 2\n"


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[str, bool]]:
    """By the command's name what it prints, and whether it succeeds."""
    answers: dict[str, tuple[str, bool]] = {}

    def run(*command: str) -> tuple[str, bool]:
        return answers.get(" ".join(command[:2])) or answers.get(command[0], ("", False))

    monkeypatch.setattr(slurm_look, "_run", run)
    monkeypatch.setattr(slurm_look, "_run_long", run)
    return answers


def test_daemons_and_nodes_at_a_gate(says: dict[str, tuple[str, bool]]) -> None:
    says["scontrol ping"] = ("Slurmctld(primary) at ctl1 is UP\n", True)
    says["scontrol"] = (NODES, True)
    says["sacctmgr"] = ("sacctmgr: error: Connection refused", False)
    said = slurm_look.gate()
    assert said["slurmctld"] == ""
    assert "Connection refused" in said["slurmdbd"]
    assert said["nodes"]["node1"] == {
        "states": ["MIXED", "DRAIN"],
        "answers": True,
        "version": "26.05.5",
        "reason": "deploy: x",
    }
    assert said["nodes"]["node2"]["answers"] is False


def test_which_nodes_are_switched_off(says: dict[str, tuple[str, bool]]) -> None:
    says["scontrol"] = (
        "NodeName=c1 Arch=x State=IDLE+CLOUD+POWERED_DOWN Comment=a State=DOWN\n" + NODES,
        True,
    )
    assert slurm_look.power() == {
        "c1": ["IDLE", "CLOUD", "POWERED_DOWN"],
        "node1": ["MIXED", "DRAIN"],
        "node2": ["DOWN", "NOT_RESPONDING"],
    }
    says["scontrol"] = ("slurm_load_node error: NodeName=x State=IDLE", False)
    assert slurm_look.power() == {}


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        (("SlurmctldTimeout        = 120 sec\nSlurmdTimeout           = 300 sec\n", True), 300),
        (("SlurmdTimeout           = 0 sec\n", True), 0),
        (("slurm_load_ctl_conf error: Unable to contact slurm controller", False), None),
    ],
)
def test_how_long_a_slurmd_may_be_silent(
    says: dict[str, tuple[str, bool]], said: tuple[str, bool], seconds: int | None
) -> None:
    says["scontrol show"] = said
    assert slurm_look.timeout() == {"seconds": seconds}


def test_jobs_of_users_are_told_one_by_one(says: dict[str, tuple[str, bool]]) -> None:
    says["squeue"] = (QUEUE, True)
    assert slurm_look.jobs("deploy-validate") == {"jobs": {"12_3": ["RUNNING", 0], "14": ["PENDING", 2]}}


def test_a_queue_that_is_not_told_is_not_empty(says: dict[str, tuple[str, bool]]) -> None:
    says["squeue"] = ("12_3 alice PEND", False)
    assert slurm_look.jobs("")["trouble"]
    says["squeue"] = ("", False)
    assert slurm_look.jobs("")["trouble"]


def test_rows_are_counted_by_job(says: dict[str, tuple[str, bool]]) -> None:
    says["sacct"] = ("7|CANCELLED by 0\n8|REQUEUED\n8|COMPLETED\n", True)
    assert slurm_look.ended(["7", "8", "9"]) == {"7": ["CANCELLED"], "8": ["REQUEUED", "COMPLETED"], "9": []}


def test_tasks_of_an_array_that_never_began_have_one_row(says: dict[str, tuple[str, bool]]) -> None:
    """As where its user cancels a waiting array."""
    rows = "5_[2-4,9%2]|CANCELLED by 2001\n5_1|COMPLETED\n5_2|RUNNING\n6_[0-8:4]|PENDING\n"
    says["sacct"] = (f"{rows}8_[1,3,...%2]|PENDING\n", True)
    assert slurm_look.ended(["5_1", "5_2", "5_3", "5_9", "5_8", "6_4", "6_5", "8_7"]) == {
        "5_1": ["COMPLETED"],
        # What it did when it began counts more.
        "5_2": ["RUNNING"],
        "5_3": ["CANCELLED"],
        "5_9": ["CANCELLED"],
        "5_8": [],
        "6_4": ["PENDING"],
        "6_5": [],
        "8_7": ["PENDING"],
    }


def test_accounting_that_does_not_answer_says_nothing_of_jobs(says: dict[str, tuple[str, bool]]) -> None:
    says["sacct"] = ("sacct: error: Connection refused", False)
    assert slurm_look.ended(["7"]) == {}


def test_arrays_are_asked_for_by_their_own_id(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def run(*command: str) -> tuple[str, bool]:
        asked.append(command[-1])
        return "", True

    monkeypatch.setattr(slurm_look, "_run", run)
    slurm_look.ended(["5_1", "5_2", "7"])
    assert asked == ["5,7"]


def test_packages_and_what_an_upgrade_left_half_done(
    says: dict[str, tuple[str, bool]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = tmp_path / "slurm-pyxis.deb"
    monkeypatch.setattr(slurm_look, "PLUGIN", plugin)
    says["dpkg-query"] = ("slurm-client ii  26.05.5-1\nslurmd iU  26.05.5-1\nsackd un  \n", True)
    said = slurm_look.look()
    assert said["packages"] == {"slurm-client": "26.05.5-1"}
    assert said["broken"] == ["slurmd"]
    assert said["plugin_waits"] is False
    says["dpkg-query"] = ("slurm-smd-client ii  26.05.5-1\nslurm-smd-slurmd ii  26.05.5-1\n", True)
    assert slurm_look.look()["packages"] == {"slurm-client": "26.05.5-1", "slurmd": "26.05.5-1"}
    assert (said["built"], slurm_look.look()["built"]) == (False, True)
    plugin.touch()
    assert slurm_look.look()["plugin_waits"] is True
