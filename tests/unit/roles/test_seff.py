"""What a job used, of what sacct says: recorded lines of Slurm 24.11."""

import json
from subprocess import CompletedProcess, TimeoutExpired

import pytest

from tests.unit.roles.loading import load_module

seff = load_module("roles/seff/files/seff.py")

_DONE = (
    "|lab|alice|staff|COMPLETED|0:0|2|8|02:00:00|3600|120"
    "|billing=8,cpu=8,gres/gpu=4,mem=16G,node=2|||5|train|x"
)
ONE = f"""\
5{_DONE}
5.extern|lab||||0:0|2|8|00:00.001|3600|||2|cpu=00:00:00,mem=696K,vmem=1M|5.extern|extern
5.0|lab||||0:0|2|8|01:00:00|1800|||8|cpu=01:00:00,mem=12G,vmem=90G|5.0|train
5.1|lab||||0:0|2|8|01:00:00|1800|||8|cpu=01:00:00,mem=4G,vmem=90G|5.1|train
"""
ARRAY = """\
9_1|lab|alice|staff|CANCELLED by 2001|0:15|1|2|00:30.500|60|UNLIMITED|cpu=2,mem=1G,node=1|||10|a
9_[2-4%1]|lab|alice|staff|PENDING|0:0|1|0|00:00:00|0|60||||9|a
"""


NOW = """\
5.extern|cpu=00:00:00,energy=0,fs/disk=4148,mem=28K,pages=0,vmem=28K
5.2|cpu=02:00:00,energy=0,fs/disk=25263,mem=14G,pages=0,vmem=20G
6.0|cpu=09:00:00,energy=0,fs/disk=25263,mem=1G,pages=0,vmem=2G
"""


def said(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    *words: str,
    now: str | None = None,
) -> str:
    def run(command: list[str], **_: object) -> CompletedProcess[str]:
        if command[0] == "sstat":
            assert command[-1] == "--jobs=5"
            return CompletedProcess(command, 0 if now else 1, now or "", "")
        assert command[0] == "sacct"
        return CompletedProcess(command, 0, text, "")

    monkeypatch.setattr(seff.subprocess, "run", run)
    assert seff.main(words) == 0
    return capsys.readouterr().out


def test_one_job(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(monkeypatch, capsys, ONE, "5").splitlines() == [
        "Job ID: 5",
        "Cluster: lab",
        "User/Group: alice/staff",
        "State: COMPLETED (exit code 0)",
        "Nodes: 2",
        "Cores per node: 4",
        "GPUs: 4",
        "CPU Utilized: 02:00:00",
        "CPU Efficiency: 25.00% of 08:00:00 core-walltime",
        "Job Wall-clock time: 01:00:00",
        "Time Efficiency: 50.00% of 02:00:00 time limit",
        "Memory Utilized: 12.00 GB",
        "Memory Efficiency: 75.00% of 16.00 GB",
    ]


def test_several_are_a_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(monkeypatch, capsys, ARRAY, "9").splitlines() == [
        "JobID      State      Elapsed   TimeEff  CPUEff  MemEff  Name",
        "9_1        CANCELLED  00:01:00  ---      25.4%   0.0%    a",
        "9_[2-4%1]  PENDING    00:00:00  0.0%     ---     ---     a",
    ]


def test_a_program_gets_bytes_and_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (job,) = json.loads(said(monkeypatch, capsys, ONE, "5", "--json"))
    assert (job["memory_used"], job["cpu_seconds"], job["name"]) == (12 << 30, 7200, "train|x")
    assert job["efficiency"] == {"cpu": 25.0, "memory": 75.0, "time": 50.0}


def test_a_job_that_waits_has_used_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting = ARRAY.splitlines()[1].replace("9_[2-4%1]", "9")
    assert "not available" in said(monkeypatch, capsys, waiting, "9")
    running = ONE.replace("COMPLETED", "RUNNING")
    assert "WARNING" in said(monkeypatch, capsys, running, "5")


def test_of_a_job_that_runs_its_nodes_say_what_it_uses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    running = ONE.replace("COMPLETED", "RUNNING")
    lines = said(monkeypatch, capsys, running, "5", now=NOW).splitlines()
    assert "CPU Efficiency: 50.00% of 08:00:00 core-walltime" in lines
    assert "Memory Efficiency: 87.50% of 16.00 GB" in lines
    assert lines[-1] == "The job runs still: this is what it used until now."


def test_nodes_that_do_not_answer_leave_what_accounting_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(command: list[str], **_: object) -> CompletedProcess[str]:
        if command[0] == "sstat":
            raise TimeoutExpired(command, 20)
        return CompletedProcess(command, 0, ONE.replace("COMPLETED", "RUNNING"), "")

    monkeypatch.setattr(seff.subprocess, "run", run)
    assert seff.main(["5"]) == 0
    assert "only steps that ended are counted" in capsys.readouterr().out


def test_of_a_short_job_the_memory_is_a_lower_bound(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    short = ONE.splitlines()[0].replace("|3600|120|", "|59|120|")
    assert said(monkeypatch, capsys, short, "5").splitlines()[-1].startswith("WARNING: Slurm measures memory")


@pytest.mark.parametrize("word", ["x", "5;id", "--jobs", "5,6", "5.0"])
def test_only_job_ids_reach_sacct(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        seff.main([word])
    assert end.value.code == 2
    assert "usage: seff" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "expected"),
    [("00:00.104", 0.104), ("1-02:03:04", 93784), ("02:03:04", 7384), ("", 0)],
)
def test_times(text: str, expected: float) -> None:
    assert seff.seconds(text) == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, "00:00:00"), (93784, "1-02:03:04"), (59.6, "00:01:00")],
)
def test_clocks(number: float, expected: str) -> None:
    assert seff.clock(number) == expected


def test_without_sacct_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(seff.subprocess, "run", run)
    with pytest.raises(SystemExit, match="sacct does not start: No such file"):
        seff.main(["5"])
