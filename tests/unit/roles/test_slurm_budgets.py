"""show-budget and the program that keeps budgets, on what Slurm's commands printed on real controllers."""

import importlib.machinery
import importlib.util
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.loading import ROOT
from tests.unit.roles.slurm_accounting.modules import projects

FILES = ROOT / "roles/slurm_budgets/files"
RECORDED = Path(__file__).parent / "slurm_metrics"
Module = Any


@pytest.fixture(autouse=True)
def _as_on_a_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(FILES))
    yield
    for name in ("budgets", "keep_budgets", "show_budget"):
        sys.modules.pop(name, None)


def loaded(name: str) -> Module:
    path = FILES / name
    module_name = name.removesuffix(".py").replace("-", "_")
    loader = importlib.machinery.SourceFileLoader(module_name, str(path))
    spec = importlib.util.spec_from_loader(module_name, loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    loader.exec_module(module)
    return module


@pytest.fixture
def budgets() -> Module:
    return loaded("budgets.py")


class Slurm:
    """Slurm with two budgets: what is granted, what was used (minutes), and jobs that wait by QOS."""

    def __init__(self, error: type[Exception]) -> None:
        self.error = error
        self.granted = {"laser": "budget: gres/gpu=10 hours a month, then stop"}
        self.minutes = {"laser": 300}
        self.waiting: dict[str, list[str]] = {}
        self.commands: list[str] = []
        self.deaf = False
        self.away = False

    def ask(self, *command: str) -> str:
        line = " ".join(command)
        if line.startswith("sacctmgr --noheader"):
            return "normal|Normal QOS default\n" + "".join(f"{k}|{v}\n" for k, v in self.granted.items())
        if line.startswith("scontrol show"):
            return "".join(
                f"QOS={name}(2)\n    GrpTRESMins=cpu=N(1),gres/gpu=600({minutes})\n"
                "    GrpTRESRunMins=cpu=N(1),gres/gpu=N(60)\n"
                for name, minutes in self.minutes.items()
            )
        if line.startswith("squeue"):
            qos = next(word.removeprefix("--qos=") for word in command if word.startswith("--qos="))
            return "".join(f"{job}\n" for job in self.waiting.get(qos, []))
        self.commands.append(line)
        if line.startswith("sacctmgr --immediate") and not self.deaf:
            self.minutes[command[5].removeprefix("name=")] = 0
        if line.startswith("scontrol update"):
            self.update(command[2].removeprefix("JobId="), command[3].removeprefix("QOS="))
        return ""

    def update(self, job: str, qos: str) -> None:
        if self.away:
            raise self.error("scontrol", "Unable to contact slurm controller (connect failure)")
        if job != "9":
            for jobs in self.waiting.values():
                if job in jobs:
                    jobs.remove(job)
            self.waiting.setdefault(qos, []).append(job)
        if job in {"9", "100"}:  # one that runs, and an array of which a task does
            raise self.error("scontrol", f"Job is no longer pending execution for job {job}")


@pytest.fixture
def slurm(budgets: Module, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    made = Slurm(budgets.UnansweredError)
    monkeypatch.setattr(budgets, "ask", made.ask)
    return made


@pytest.fixture
def keep(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> Module:
    module = loaded("keep_budgets.py")
    monkeypatch.setattr(module, "ask", slurm.ask)
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    return module


@pytest.mark.parametrize("release", ["22.05", "24.11"])
def test_what_slurm_prints(budgets: Module, release: str) -> None:
    use = budgets.uses((RECORDED / release / "budget_use.txt").read_text())
    assert use["laser"].running["gres/gpu"] == pytest.approx(0.5, abs=0.1)
    assert use["normal"].used["cpu"] == 0
    rows = (line.partition("|") for line in (RECORDED / release / "budgets.txt").read_text().splitlines())
    terms = {name: budgets.terms(description) for name, _, description in rows}
    assert {name for name, said in terms.items() if said} == {"laser", "ice"}
    assert terms["ice"] == ({"gres/gpu": 1, "cpu": 100}, "a quarter", "nocont")


@pytest.mark.parametrize("period", ["month", "quarter", "year", "once"])
def test_what_the_role_writes_is_understood(budgets: Module, period: str) -> None:
    budget = {"hours": "gres/gpu=7,billing=9", "period": period, "at_end": "lower", "lower_qos": "no.cont-1"}
    terms = budgets.terms(projects.in_words(budget))
    assert terms.hours == {"gres/gpu": 7, "billing": 9}
    assert terms.lower_qos == "no.cont-1"
    assert (budgets.bounds(terms.period, datetime(2026, 1, 1, tzinfo=UTC))[0] is None) == (period == "once")


@pytest.mark.parametrize(
    ("period", "now", "start", "end"),
    [
        ("a month", "2026-12-31", "2026-12-01", "2027-01-01"),
        ("a month", "2026-01-01", "2026-01-01", "2026-02-01"),
        ("a quarter", "2026-11-26", "2026-10-01", "2027-01-01"),
        ("a quarter", "2026-06-30", "2026-04-01", "2026-07-01"),
        ("a year", "2026-02-28", "2026-01-01", "2027-01-01"),
    ],
)
def test_periods(budgets: Module, period: str, now: str, start: str, end: str) -> None:
    found = budgets.bounds(period, datetime.fromisoformat(f"{now}T23:59:59"))
    assert [one.date().isoformat() for one in found] == [start, end]


def test_a_new_budget_is_noted_and_keeps_what_was_used(keep: Module, slurm: Slurm, tmp_path: Path) -> None:
    assert keep.main(tmp_path) == 0
    assert slurm.commands == []
    assert list(json.loads((tmp_path / "deploy_budgets.json").read_text())["periods"]) == ["laser"]


def test_a_period_begins_once(keep: Module, slurm: Slurm, tmp_path: Path) -> None:
    keep.write(tmp_path, {"periods": {"laser": "2020-01-01", "gone": "2020-01-01"}, "lowered": {}})
    assert keep.main(tmp_path) == 0
    reset = "sacctmgr --immediate modify qos where name=laser set RawUsage=0"
    assert slurm.commands == [reset]
    slurm.minutes["laser"] = 5
    assert keep.main(tmp_path) == 0
    assert slurm.commands == [reset]
    assert list(keep.read(tmp_path)["periods"]) == ["laser"]


def test_a_longer_period_takes_nothing_back(keep: Module, slurm: Slurm, tmp_path: Path) -> None:
    keep.main(tmp_path)
    slurm.granted["laser"] = slurm.granted["laser"].replace("a month", "a year")
    assert keep.main(tmp_path) == 0
    assert slurm.commands == []


def test_what_slurmctld_missed_is_tried_again(keep: Module, slurm: Slurm, tmp_path: Path) -> None:
    keep.write(tmp_path, {"periods": {"laser": "2020-01-01"}, "lowered": {}})
    slurm.deaf = True
    assert keep.main(tmp_path) == 1
    slurm.deaf = False
    assert keep.main(tmp_path) == 0
    assert slurm.minutes["laser"] == 0


def test_jobs_go_on_in_the_lower_qos_and_come_back(keep: Module, slurm: Slurm, tmp_path: Path) -> None:
    slurm.granted = {"ice": "budget: gres/gpu=5 hours a month, then go on in nocont"}
    slurm.minutes = {"ice": 299}
    slurm.waiting = {"ice": ["7", "8", "9"], "nocont": ["3"]}
    keep.main(tmp_path)
    assert slurm.waiting["ice"] == ["7", "8", "9"]
    slurm.minutes = {"ice": 300}
    assert keep.main(tmp_path) == 0
    # One had begun; one of others was there before.
    assert slurm.waiting == {"ice": ["9"], "nocont": ["3", "7", "8"]}
    slurm.waiting["nocont"].remove("7")
    slurm.minutes = {"ice": 0}
    keep.main(tmp_path)
    assert slurm.waiting == {"ice": ["9", "8"], "nocont": ["3"]}


def test_arrays_come_back_and_so_does_what_slurmctld_did_not_hear_of(
    keep: Module, slurm: Slurm, tmp_path: Path
) -> None:
    slurm.granted = {"ice": "budget: gres/gpu=5 hours a month, then go on in nocont"}
    slurm.minutes = {"ice": 300}
    slurm.waiting = {"ice": ["7", "100"]}
    assert keep.main(tmp_path) == 0
    assert slurm.waiting == {"ice": [], "nocont": ["7", "100"]}
    slurm.minutes = {"ice": 0}
    slurm.away = True
    assert keep.main(tmp_path) == 0
    assert keep.read(tmp_path)["lowered"] == {"ice": ["7", "100"]}
    slurm.away = False
    assert keep.main(tmp_path) == 0
    assert slurm.waiting == {"ice": ["7", "100"], "nocont": []}
    assert keep.read(tmp_path)["lowered"] == {"ice": []}


def test_a_resource_that_slurm_does_not_count_is_an_error(
    keep: Module, slurm: Slurm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slurm.granted = {"laser": "budget: cpu=9,gres/gup=5 hours a month, then go on in nocont"}
    assert keep.main(tmp_path) == 1
    assert "budget of laser: slurmctld does not count gres/gup" in capsys.readouterr().err


def shown(monkeypatch: pytest.MonkeyPatch, answers: dict[str, str], *arguments: str) -> int:
    module = loaded("show-budget")

    def ask(*command: str) -> str:
        line = " ".join(command)
        return next((text for part, text in answers.items() if part in line), "")

    monkeypatch.setattr(module, "ask", ask)
    monkeypatch.setattr(sys.modules["budgets"], "ask", ask)
    monkeypatch.setattr(module.os, "geteuid", lambda: 1)
    monkeypatch.setattr(module, "me", lambda: "alice")
    monkeypatch.setattr(sys, "argv", ["show-budget", *arguments])
    return int(module.main())


USED = """\
bob|laser|7200|cpu=1,gres/gpu=2
bob|other|7200|gres/gpu=2
alice|laser|1800|gres/gpu=1
"""
ANSWERS = {
    "show qos": "normal|Normal\nlaser|budget: gres/gpu=10 hours a month, then stop\n"
    "ice|budget: cpu=10 hours in all, then go on in nocont\n",
    "where user=alice": "alice|laser\n",
    "assoc_mgr": "QOS=laser(2)\n    GrpTRESMins=gres/gpu=600(510)\n    GrpTRESRunMins=gres/gpu=N(60)\n",
    "squeue": "7|laser|QOSGrpGRESMinutes\n8|laser|Priority\n5|normal|AssocGrpCPUMinutesLimit\n",
    "show job 7": "JobId=7 TimeLimit=01:00:00 ReqTRES=cpu=1,gres/gpu=2",
    "show job 5": "JobId=5 TimeLimit=UNLIMITED TRES=cpu=1",
    "--state=TIMEOUT": "4|laser|60|10\n6|laser|600|10\n",
}


def test_a_member_reads_what_is_left_and_why_a_job_waits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(monkeypatch, ANSWERS) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1].split()[:8] == ["laser", "gres/gpu", "10", "8.5", "85", "%", "1.0", "0.5"]
    assert said[1].endswith("no job starts")
    assert "warning: laser: 85 % of the hours of gres/gpu are used" in said
    [why] = [line for line in said if line.startswith("job 7")]
    assert "it may use 2.0 hours of gres/gpu, and laser has 0.5" in why
    assert "TimeLimit=MINUTES" in why
    assert "job 4 was ended before its time limit: the hours of laser were used up while it ran" in said
    assert any(line.startswith("job 5 waits (AssocGrpCPUMinutesLimit)") for line in said)
    assert not any("job 6" in line or "job 8" in line or "ice" in line for line in said)


def test_a_manager_reads_who_used_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    managing = {
        "withcoord": "alice|laser\n",
        "format=account,user,qos": "laser||laser\nlaser|alice|laser\nother||laser\n",
        "--accounts=laser ": USED,
    }
    assert shown(monkeypatch, {**managing, **ANSWERS}, "--json") == 0
    [laser] = json.loads(capsys.readouterr().out)["budgets"]
    assert laser["members"] == {"alice": {"gres/gpu": 0.5}, "bob": {"gres/gpu": 4.0}}
    assert laser["resources"]["gres/gpu"]["left_hours"] == 0.5
    assert laser["waiting_jobs"] == [
        {"job": "7", "reason": "QOSGrpGRESMinutes", "may_use_hours": {"gres/gpu": 2.0}}
    ]


def test_no_budget(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(monkeypatch, {}) == 0
    assert capsys.readouterr().out == "no project of yours has a budget\n"
    assert shown(monkeypatch, {}, "laser") == 2
    assert "there is no budget of laser" in capsys.readouterr().err
