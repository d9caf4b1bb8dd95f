"""Planned moves of the lead: what is asked before, what is refused, what is said afterwards."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deploy.engine import failover as module
from deploy.engine.failover import Intent, Moved
from deploy.engine.options import Options
from deploy.errors import DeployError, ExitCode
from deploy.run.ssh import Unanswered
from tests.unit.site.sites import write_site

SITE = (
    "[slurm-master]\nctl1 ansible_host=10.0.0.1\nctl2 ansible_host=10.0.0.2\nctl3 ansible_host=10.0.0.3\n"
    "[slurm-database]\nlogin1 ansible_host=10.0.0.4\n[slurm-node]\nnode1 ansible_host=10.0.0.5\n"
)
STATE = {"group_vars/slurm-master.yml": "slurmctld_state_save_location: /shared/state\n"}
LEADS, STANDS_BY, SILENT = "leads", "stands by", "silent"
Answer = dict[str, Any] | Unanswered
Jobs = dict[str, list[Any]]


class Controllers:
    """What they answer to each question, and what they were told to do, in turn."""

    def __init__(self) -> None:
        self.stands = {"ctl1": LEADS, "ctl2": STANDS_BY, "ctl3": STANDS_BY}
        self.unready = {"state": "", "configuration": "", "database": ""}
        self.jobs: Jobs = {"7": ["RUNNING", 0], "8": ["PENDING", 0]}
        self.after: Jobs = dict(self.jobs)
        self.rows: dict[str, list[str]] = {}
        self.done: list[tuple[str, str]] = []
        self.answers: dict[tuple[str, str], Answer] = {}
        self.is_locked = False

    def ask(self, questions: Mapping[str, Any], *_: object, **__: object) -> dict[str, Any]:
        ((name, (verb, given)),) = questions.items()
        assert self.is_locked
        if verb in {"halt", "take", "stand_by"}:
            self.done.append((verb, name))
        if said := self.answers.get((verb, name)):
            return {name: said}
        return {name: getattr(self, f"_{verb}")(name, **given)}

    def _stand(self, _: str) -> Answer:
        return {name: {"stands": how, "why": "", "since": ""} for name, how in self.stands.items()}

    def _ready(self, _: str, leader: str) -> Answer:
        assert self.stands[leader] == LEADS
        return self.unready

    def _queue(self, _: str, name: str) -> Answer:
        return {"jobs": self.jobs if not self.done else self.after} | (
            {} if self.stands[name] == LEADS else {"trouble": "standby mode"}
        )

    def _halt(self, name: str) -> Answer:
        self.stands[name] = SILENT
        return {"at": 97.5, "trouble": ""}

    def _stand_by(self, name: str) -> Answer:
        self.stands[name] = STANDS_BY
        return {"trouble": ""}

    def _take(self, asked: str, name: str, leader: str, seconds: float) -> Answer:
        assert asked == name
        assert seconds
        place = [*self.stands].index(name)
        # Slurm stops those before it.
        self.stands |= dict.fromkeys([*self.stands][:place], SILENT)
        self.stands[leader] = STANDS_BY if leader != "ctl1" else SILENT
        self.stands[name] = LEADS
        return {"leads": True, "last": 98.0, "first": 100.0, "trouble": ""}

    def _ended(self, _: str, names: list[str]) -> Answer:
        return {name: self.rows.get(name, []) for name in names}


@pytest.fixture
def controllers(monkeypatch: pytest.MonkeyPatch) -> Controllers:
    made = Controllers()

    @contextmanager
    def alone(*_: object, is_needed: bool) -> Iterator[float]:
        made.is_locked = is_needed
        yield 0.0
        made.is_locked = False

    monkeypatch.setattr(module, "alone", alone)
    monkeypatch.setattr(module, "ask", made.ask)
    monkeypatch.setattr(module, "_POLL_SECONDS", 0)
    minutes = iter(range(0, 10**6, 60))
    monkeypatch.setattr("deploy.engine.failover.time.monotonic", lambda: float(next(minutes)))
    return made


def agrees(_: Intent) -> bool:
    return True


def over(tmp_path: Path, to: str | None = None, *, says: Callable[[Intent], bool] = agrees) -> Moved:
    return module.failover(write_site(tmp_path, SITE, STATE), to, Options(), says, print)


def back(tmp_path: Path) -> Moved:
    return module.failback(write_site(tmp_path, SITE, STATE), Options(), agrees, print)


def refused(tmp_path: Path, to: str | None = None) -> DeployError:
    with pytest.raises(DeployError) as problem:
        over(tmp_path, to)
    return problem.value


def test_the_second_controller_leads_with_the_same_jobs(controllers: Controllers, tmp_path: Path) -> None:
    came = over(tmp_path)
    assert (came.before, came.leader, came.silence, came.silent) == ("ctl1", "ctl2", 2.0, ("ctl1",))
    assert [(fate.job, fate.now) for fate in came.jobs] == [("7", "RUNNING"), ("8", "PENDING")]
    assert came.exit_code is ExitCode.OK
    assert controllers.done == [("take", "ctl2")]


def test_what_slurm_stopped_on_the_way_stands_by_again(controllers: Controllers, tmp_path: Path) -> None:
    came = over(tmp_path, "ctl3")
    assert (came.leader, came.silent) == ("ctl3", ("ctl1",))
    assert controllers.done == [("take", "ctl3"), ("stand_by", "ctl2")]


def test_who_leads_already_has_nothing_to_do(controllers: Controllers, tmp_path: Path) -> None:
    assert back(tmp_path).is_nothing
    controllers.stands |= {"ctl1": SILENT, "ctl2": LEADS}
    assert over(tmp_path).is_nothing
    assert not controllers.done


def test_the_first_one_leads_again_after_the_other_was_stopped(
    controllers: Controllers, tmp_path: Path
) -> None:
    controllers.stands |= {"ctl1": SILENT, "ctl2": LEADS}
    came = back(tmp_path)
    assert (came.before, came.leader, came.silence, came.silent) == ("ctl2", "ctl1", 2.5, ())
    assert controllers.done[:2] == [("halt", "ctl2"), ("take", "ctl1")]


def test_where_the_leader_cannot_be_stopped_slurm_moves_the_lead_by_itself(
    controllers: Controllers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    controllers.stands |= {"ctl1": SILENT, "ctl2": LEADS}
    controllers.answers["halt", "ctl2"] = Unanswered("No route to host")
    assert back(tmp_path).silence == 2.0
    assert "so it takes longer: No route to host" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("after", "rows", "trouble"),
    [
        ({"8": ["PENDING", 0]}, {}, "neither Slurm nor accounting knows it any more"),
        ({"7": ["RUNNING", 1], "8": ["PENDING", 0]}, {}, "it was started again 1 times"),
        ({"8": ["PENDING", 0]}, {"7": ["NODE_FAIL"]}, "accounting has it as NODE_FAIL"),
    ],
)
def test_a_job_that_was_lost_or_started_again_is_told(
    controllers: Controllers, tmp_path: Path, after: Jobs, rows: dict[str, list[str]], trouble: str
) -> None:
    controllers.after, controllers.rows = after, rows
    came = over(tmp_path)
    assert [(fate.job, fate.trouble) for fate in came.hurt] == [("7", trouble)]
    assert came.exit_code is ExitCode.FAILED


def test_a_job_that_ended_meanwhile_was_not_lost(controllers: Controllers, tmp_path: Path) -> None:
    controllers.after, controllers.rows = {"8": ["RUNNING", 0]}, {"7": ["COMPLETED"]}
    assert not over(tmp_path).hurt


def test_one_controller_has_no_other(tmp_path: Path, controllers: Controllers) -> None:
    site = write_site(tmp_path)
    with pytest.raises(DeployError, match="one-controller") as problem:
        module.failover(site, None, Options(), agrees, print)
    assert problem.value.exit_code is ExitCode.BAD_INPUT
    with pytest.raises(DeployError, match="one-controller"):
        module.failback(site, Options(), agrees, print)
    assert not controllers.done


def test_a_host_that_is_no_controller_is_bad_input(controllers: Controllers, tmp_path: Path) -> None:
    problem = refused(tmp_path, "node1")
    assert problem.exit_code is ExitCode.BAD_INPUT
    assert "node1 is no controller: [slurm-master] has ctl1, ctl2, ctl3" in str(problem)
    assert not controllers.done


@pytest.mark.parametrize(
    ("stands", "reference", "words"),
    [
        ({"ctl1": SILENT}, "leader-unclear", "no controller that it reaches leads"),
        ({"ctl3": LEADS}, "leader-unclear", "ctl1 and ctl3 lead at once"),
        ({"ctl2": SILENT}, "controller-silent", "its slurmctld does not answer"),
    ],
)
def test_what_is_not_clear_changes_nothing(
    controllers: Controllers, tmp_path: Path, stands: dict[str, str], reference: str, words: str
) -> None:
    controllers.stands |= stands
    problem = refused(tmp_path)
    assert problem.findings[0].reference == reference
    assert words in str(problem)
    assert not controllers.done


@pytest.mark.parametrize("what", ["state", "configuration", "database"])
def test_a_controller_that_could_not_lead_is_not_told_to(
    controllers: Controllers, tmp_path: Path, what: str
) -> None:
    controllers.unready[what] = "it is not there"
    problem = refused(tmp_path)
    assert problem.findings[0].reference == "failover-unready"
    assert f"by its {what}: it is not there" in str(problem)
    assert not controllers.done


def test_a_target_that_does_not_answer_changes_nothing(controllers: Controllers, tmp_path: Path) -> None:
    controllers.answers["stand", "ctl2"] = Unanswered("Connection timed out")
    problem = refused(tmp_path)
    assert (problem.findings[0].reference, problem.exit_code) == ("controller-silent", ExitCode.UNREACHABLE)
    assert not controllers.done


def test_where_nobody_agrees_nothing_is_done(controllers: Controllers, tmp_path: Path) -> None:
    asked: list[Intent] = []

    def declines(intent: Intent) -> bool:
        asked.append(intent)
        return False

    with pytest.raises(DeployError, match="failover-not-agreed") as problem:
        over(tmp_path, says=declines)
    assert problem.value.exit_code is ExitCode.CHANGES_PENDING
    assert asked == [Intent("ctl1", "ctl2", 2)]
    assert not controllers.done


def test_a_takeover_that_is_refused_says_who_leads(controllers: Controllers, tmp_path: Path) -> None:
    controllers.answers["take", "ctl2"] = {
        "leads": False,
        "last": 1.0,
        "first": None,
        "trouble": "Access denied",
    }
    problem = refused(tmp_path)
    assert problem.findings[0].reference == "failover-stopped"
    assert "it did not take the lead from ctl1 (Access denied); now ctl1 leads" in str(problem)
    assert "it leads as before" in str(problem)


def test_where_nobody_leads_afterwards_it_is_told_how_somebody_does(
    controllers: Controllers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controllers.answers["take", "ctl2"] = {"leads": False, "last": 1.0, "first": None, "trouble": ""}
    controllers.stands = {"ctl1": LEADS, "ctl2": STANDS_BY, "ctl3": STANDS_BY}
    stand = controllers._stand

    def later(name: str) -> Answer:
        if controllers.done:
            controllers.stands["ctl1"] = SILENT
        return stand(name)

    monkeypatch.setattr(controllers, "_stand", later)
    problem = refused(tmp_path)
    assert "now no controller that it reaches leads" in str(problem)
    assert "ctl1 leads again with: systemctl restart slurmctld   (on ctl1)" in str(problem)


def test_a_failback_that_fails_starts_what_it_stopped(controllers: Controllers, tmp_path: Path) -> None:
    controllers.stands |= {"ctl1": SILENT, "ctl2": LEADS}
    controllers.answers["take", "ctl1"] = {"leads": False, "last": 1.0, "first": None, "trouble": "masked"}
    with pytest.raises(DeployError, match="failover-stopped") as problem:
        back(tmp_path)
    assert controllers.done == [("halt", "ctl2"), ("take", "ctl1"), ("stand_by", "ctl2")]
    assert "ctl2 takes over after slurmctld_timeout seconds" in str(problem.value)


def test_a_connection_that_breaks_meanwhile_is_no_failure(
    controllers: Controllers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = controllers._take

    def breaks(asked: str, name: str, leader: str, seconds: float) -> Answer:
        take(asked, name, leader, seconds)
        return Unanswered("Connection closed")

    monkeypatch.setattr(controllers, "_take", breaks)
    came = over(tmp_path)
    assert (came.leader, came.exit_code) == ("ctl2", ExitCode.OK)
