"""The order of a drill, its report and its exit code, with a lab that is told what to come to."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from deploy.cli import drill as module
from deploy.engine import drill as engine
from deploy.engine.options import Options
from deploy.errors import DeployError, ExitCode, error
from deploy.judge.drilled import Compared, Verdict
from deploy.judge.summary import summarize
from deploy.lab.drill import Drill
from deploy.run.archive import Archive
from deploy.show.drill import drill_lines
from deploy.site.inventory import Site
from deploy.validate.result import Judged, Validation, failed, passed
from tests.unit.show.runs import ended

GOOD = Judged("munge", "all decode", (passed("ok"),))
BAD = Judged("nodes", "every node is there", (failed("Slurm does not know it", "n1"),))
ABOUT = {
    "file": "backups/c.age",
    "sha256": "ab12",
    "bytes": 28872,
    "made_at": 0,
    "age_seconds": 7200,
    "made_by": "the timer",
    "deploy": "1",
    "slurm": "slurm 24.11.5",
    "mariadb": "11.8",
    "verified_parts": 11,
    "has_secrets": False,
}


@dataclass
class Lab:
    """Steps, and what each comes to."""

    steps: list[str] = field(default_factory=list)
    verdict: Verdict = Verdict.SAME
    check: Judged = GOOD
    deployment: Any = field(default_factory=lambda: summarize([ended()], []))
    problem: DeployError | None = None

    @contextmanager
    def staged(self, *_: object, **__: object) -> Iterator[Path]:
        self.steps.append("up")
        try:
            yield Path("/lab/inventory.yml")
        finally:
            self.steps.append("down")

    def deploy(self, *_: object) -> Any:  # noqa: ANN401
        self.steps.append("deploy")
        return self.deployment

    def validate(self, *_: object, **__: object) -> Validation:
        self.steps.append("validate")
        return Validation("mine", 0.0, 12.0, (self.check,))

    def cut_off(self, _: Site) -> dict[str, int]:
        self.steps.append("apart")
        return {"machines": 2, "addresses_of_the_site": 3}

    def compare(self, drill: Drill) -> None:
        self.steps.append("compare")
        drill.compared = (Compared("jobs that wait", "2", "1", self.verdict, "not there: 3"),)
        if self.problem:
            raise self.problem


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    made = Lab()

    def compare(drill: Drill) -> None:
        made.compare(drill)

    monkeypatch.setattr(module, "staged", made.staged)
    monkeypatch.setattr(module, "need_lab", lambda _: None)
    monkeypatch.setattr(module, "read_site", lambda path: Site(path, {}, {}))
    monkeypatch.setattr(module, "deploy_cluster", made.deploy)
    monkeypatch.setattr(module, "validate_quickly", made.validate)
    monkeypatch.setattr(module, "cluster_name", lambda _: "mine")
    monkeypatch.setattr(module, "vaulted", lambda _: ["site_token"])
    monkeypatch.setattr(engine, "about", lambda _: ABOUT)
    monkeypatch.setattr(Drill, "share_state", lambda *_: made.steps.append("share"))
    monkeypatch.setattr(Drill, "give_secrets", lambda *_: made.steps.append("secrets"))
    monkeypatch.setattr(Drill, "cut_off", made.cut_off)
    monkeypatch.setattr(Drill, "restore", lambda *_: made.steps.append("restore"))
    monkeypatch.setattr(Drill, "compare", compare)
    monkeypatch.setattr(Drill, "clear", lambda *_: made.steps.append("clear"))
    return made


def work() -> module._Work:
    what: Any = SimpleNamespace(
        hosts=(SimpleNamespace(name="ctl1"), SimpleNamespace(name="n1")), left_out=("n2",)
    )
    return module._Work(
        Site(Path("/site/inventory.ini"), {}, {}), what, Archive(Path("c"), (), {}, {}), "trixie", Options()
    )


def test_the_lab_is_apart_before_anything_is_restored(lab: Lab) -> None:
    made = work()
    made.perform("d", is_kept=False)
    assert lab.steps == [
        *(
            "up",
            "share",
            "secrets",
            "deploy",
            "apart",
            "restore",
            "compare",
            "clear",
            "deploy",
            "validate",
            "down",
        )
    ]
    report = made.report()
    assert (report["outcome"], report["exit_code"]) == ("passed", 0)
    assert [step["step"] for step in report["steps"]][0::7] == ["machines booted", "machines removed"]
    text = "\n".join(drill_lines(report))
    assert "drill of the cluster mine: passed" in text
    assert "2 h before, by the timer" in text
    assert "hosts that have no machine in the lab (--nodes): n2" in text
    assert "the backup, made by the controller itself, has none" in text
    assert "variables in the vault: site_token" in text
    assert json.loads(json.dumps(report)) == report


@pytest.mark.parametrize(
    ("verdict", "check"), [(Verdict.DIFFERENT, GOOD), (Verdict.SAME, BAD), (Verdict.DIFFERENT, BAD)]
)
def test_what_differs_or_fails_is_a_failed_drill(lab: Lab, verdict: Verdict, check: Judged) -> None:
    lab.verdict, lab.check = verdict, check
    made = work()
    made.perform("d", is_kept=False)
    assert made.exit_code is ExitCode.FAILED
    text = "\n".join(drill_lines(made.report()))
    assert "drill of the cluster mine: failed" in text
    assert ("failed  nodes n1: Slurm does not know it" in text) == (check is BAD)
    assert "not there: 3" in text


def test_a_drill_that_breaks_off_takes_its_lab_away_and_says_how_far_it_came(lab: Lab) -> None:
    lab.problem = error("drill-jobs-left", "they do not end", hint="look", exit_code=ExitCode.FAILED)
    made = work()
    assert not made.is_begun
    with pytest.raises(DeployError):
        made.perform("d", is_kept=False)
    assert lab.steps[-2:] == ["compare", "down"]
    assert made.is_begun
    made.problem = str(lab.problem)
    text = "\n".join(drill_lines(made.report()))
    assert "they do not end" in text
    assert "machines removed" in text
    assert "Validated" not in text


def test_a_lab_that_is_not_deployed_is_given_nothing_of_the_backup(lab: Lab) -> None:
    lab.deployment = summarize([ended(rc=2)], ["n1"])
    with pytest.raises(typer.Exit):
        work().perform("d", is_kept=False)
    assert lab.steps == ["up", "share", "secrets", "deploy", "down"]


@pytest.mark.usefixtures("lab")
def test_a_report_is_kept_as_text_and_data(tmp_path: Path) -> None:
    made = work()
    made.perform("d", is_kept=True)
    place = module._writable(tmp_path / "drills")
    module._kept(place, "text\n", made.report())
    names = sorted(path.suffix for path in place.iterdir())
    assert names == [".json", ".txt"]
    assert {path.stat().st_mode & 0o777 for path in place.iterdir()} == {0o600}
    (tmp_path / "file").touch()
    with pytest.raises(DeployError, match="file-not-writable"):
        module._writable(tmp_path / "file")
