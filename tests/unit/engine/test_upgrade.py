"""Steps of an upgrade: what hosts are told, which failure is named, and that nothing is left in the queue."""

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from deploy.engine import upgrade as module
from deploy.engine.batches import Share
from deploy.engine.run import Run
from deploy.engine.upgrade import Walk
from deploy.engine.upgrade_state import State
from deploy.errors import DeployError, ExitCode, error
from deploy.judge.upgrade_outcome import Outcome
from deploy.run.cancellation import Cancellation
from deploy.run.events import HostResult, Status
from deploy.site.inventory import read_site
from tests.unit.site.sites import write_site


def result(host: str, task: str, status: Status, message: str = "", **more: Any) -> HostResult:  # noqa: ANN401
    return HostResult(0.0, host, "Nodes", "slurm_packages", task, "x.yml:1", status, 1.0, message, **more)


def walk(place: Path, asked: list[tuple[str, dict[str, Any]]] | None = None) -> Walk:
    site = read_site(write_site(place))
    run = SimpleNamespace(
        site=site,
        options=None,
        place=place,
        inventory="inventory.ini",
        cancellation=Cancellation(),
        ansible=None,
        request=lambda *told: told,
        refuse_silence=lambda *_: None,
        command=lambda verb: f"deploy {verb} inventory.ini",
        say=lambda _: None,
    )

    def ask(verb: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
        if asked is None:
            raise error("controller-silent", "it does not answer", where="ctl1", hint="")
        asked.append((verb, arguments))
        return {}

    before = {"ctl1": "26.05.5-1", "login1": "24.11.5-4", "node1": "26.05.5-1", "node2": "24.11.5-4"}
    state = SimpleNamespace(wanted="26.05", before=before, user="tester", contract={}, ask=ask)
    return Walk(cast("Run", run), cast("State", state), Share(1), drains=False)


@pytest.fixture
def happens(monkeypatch: pytest.MonkeyPatch) -> list[HostResult]:
    """What a playbook's run is going to say."""
    events: list[HostResult] = []

    def execute(_request: Any, tell: Callable[[HostResult], None], *_: Any) -> None:  # noqa: ANN401
        for event in events:
            tell(event)

    monkeypatch.setattr(module, "execute", execute)
    monkeypatch.setattr(module, "borrowed_secrets", lambda _: ())
    return events


def test_the_first_failure_of_a_host_is_named(tmp_path: Path, happens: list[HostResult]) -> None:
    happens += [
        result("node1", "Bring the package", Status.FAILED, "no space left"),
        result("node1", "Start Slurm's daemons", Status.FAILED, "slurmd does not start"),
    ]
    with pytest.raises(DeployError, match="no space left"):
        walk(tmp_path).step("hosts", ["node1"])


def test_answers_come_by_host(tmp_path: Path, happens: list[HostResult]) -> None:
    happens += [
        result("node1", "Fetch", Status.OK, answer={"version": "26.05.5-1"}),
        result("node2", "Fetch", Status.FAILED, "x", rescued=True),
    ]
    assert walk(tmp_path).step("prepare", ["node1", "node2"]) == {"node1": {"version": "26.05.5-1"}}
    assert walk(tmp_path).step("prepare", []) == {}


@pytest.mark.parametrize(
    ("group", "back_to", "expected"),
    [
        # Of a host that this step does not change the release stays pinned.
        ("prepare", "", {"slurm_packages_kept": "24.11"}),
        ("hosts", "", {"slurm_packages_kept": ""}),
        (
            "hosts",
            "24.11",
            {"slurm_packages_kept": "", "slurm_packages_version": "24.11", "slurm_stage_goes_back": True},
        ),
    ],
)
def test_which_release_a_host_is_told(
    tmp_path: Path, happens: list[HostResult], group: str, back_to: str, expected: dict[str, Any]
) -> None:
    assert happens == []
    walk(tmp_path).step(group, ["node2"], back_to=back_to)
    told = json.loads((tmp_path / f"{group}.json").read_text())["all"]["children"]
    own = told["phase_check"]["hosts"]["node2"]
    names = ("slurm_packages_kept", "slurm_packages_version", "slurm_stage_goes_back")
    assert {name: own[name] for name in names if name in own} == expected


def test_what_fails_leaves_no_witness_in_the_queue(tmp_path: Path) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    with pytest.raises(DeployError, match="apt failed"), walk(tmp_path, asked).leaving_nothing():
        raise error("upgrade-step-failed", "apt failed", where="node1", hint="")
    assert asked == [("leave", {"user": "tester"})]
    # A controller that does not answer does not hide what failed.
    with pytest.raises(DeployError, match="apt failed"), walk(tmp_path).leaving_nothing():
        raise error("upgrade-step-failed", "apt failed", where="node1", hint="")
    with walk(tmp_path, asked).leaving_nothing():
        pass
    assert len(asked) == 1


QUEUE: dict[str, Any] = {"jobs": {"7": ["RUNNING", 0]}}
SILENT: dict[str, Any] = {"trouble": "timed out"}
ROWS = {"7": ["COMPLETED"], "9": ["COMPLETED"]}


def came(
    place: Path, monkeypatch: pytest.MonkeyPatch, *, jobs: list[dict[str, Any]], ended: list[dict[str, Any]]
) -> Outcome:
    """What an upgrade without steps comes to; what Slurm and accounting say in turn, the last for good."""

    def ask(verb: str, **_: Any) -> dict[str, Any]:  # noqa: ANN401
        if verb == "leave":
            return {"waiting": []}
        said = {"jobs": jobs, "ended": ended}[verb]
        return said.pop(0) if len(said) > 1 else said[0]

    monkeypatch.setattr(module, "_PAUSE", 0)
    clock = count()
    monkeypatch.setattr("time.monotonic", lambda: next(clock) * 30.0)
    made = walk(place)
    monkeypatch.setattr(made.state, "ask", ask)
    stream = SimpleNamespace(jobs=["9"], longest_silence=1.0, trouble="")
    return made.outcome(made._jobs_of_before(), cast("Any", stream))


def test_slurm_has_its_time_to_say_which_jobs_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [SILENT, QUEUE, SILENT, {"jobs": {}}]
    found = came(tmp_path, monkeypatch, jobs=said, ended=[{}, {"7": []}, ROWS])
    assert ([fate.now for fate in found.jobs], found.without_end) == (["COMPLETED"], ())
    assert found.exit_code is ExitCode.OK


def test_jobs_that_slurm_does_not_name_at_the_end_are_not_unharmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = came(tmp_path, monkeypatch, jobs=[QUEUE, SILENT], ended=[ROWS])
    assert "timed out" in found.unknown
    assert (found.jobs, found.exit_code) == ((), ExitCode.FAILED)


def test_accounting_that_does_not_answer_at_the_end_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = came(tmp_path, monkeypatch, jobs=[QUEUE, {"jobs": {}}], ended=[{}])
    assert ["accounting does not answer" in fate.trouble for fate in found.jobs] == [True]
    assert found.without_end == ("9",)


def test_nothing_is_begun_where_the_jobs_are_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DeployError, match="which jobs there are: timed out, before the first step"):
        came(tmp_path, monkeypatch, jobs=[SILENT], ended=[ROWS])


@pytest.mark.parametrize(
    ("seconds", "drains", "is_refused"),
    [(60, False, True), (299, False, True), (300, False, False), (0, False, False), (60, True, False)],
)
def test_jobs_are_not_lost_to_a_slurmd_that_is_silent_for_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, seconds: int, drains: bool, is_refused: bool
) -> None:
    made = walk(tmp_path)
    made.drains = drains
    monkeypatch.setattr(made.state, "ask", lambda _: {"seconds": seconds})
    if not is_refused:
        made.refuse_short_timeout()
        return
    with pytest.raises(DeployError) as problem:
        made.refuse_short_timeout(ExitCode.FAILED)
    (finding,) = problem.value.findings
    assert (finding.reference, finding.where) == ("upgrade-slurmd-timeout", "ctl1")
    assert f"{seconds} s" in finding.message
    assert "slurmctld_slurmd_timeout: 300" in finding.hint
    assert problem.value.exit_code is ExitCode.FAILED


def test_a_controller_that_does_not_say_its_timeout_promises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = walk(tmp_path)
    monkeypatch.setattr(made.state, "ask", lambda _: {"seconds": None})
    with pytest.raises(DeployError, match="does not say"):
        made.refuse_short_timeout()


def test_the_timeout_is_looked_at_before_the_first_step_and_before_the_first_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, codes = walk(tmp_path), list[ExitCode]()

    def refuse(_: Walk, exit_code: ExitCode = ExitCode.BAD_INPUT) -> None:
        codes.append(exit_code)
        raise error("upgrade-slurmd-timeout", "60 s", where="ctl1", hint="", exit_code=exit_code)

    monkeypatch.setattr(Walk, "refuse_short_timeout", refuse)
    monkeypatch.setattr(Walk, "gate", lambda *_: None)
    said: dict[str, Any] = {"daemons": {"slurmctld": "active"}, "broken": [], "packages": {}}
    vars(made.state).update(left=["ctl1", "node2"], looks=lambda _: {"ctl1": said})
    for step in (made.start, made.nodes):
        with pytest.raises(DeployError, match="60 s"):
            step()
    assert codes == [ExitCode.BAD_INPUT, ExitCode.FAILED]
    # Where no node is left, nothing is silent.
    vars(made.state).update(left=["login1"])
    made.start()
    made.nodes()


def test_a_database_that_is_converted_is_waited_for_before_slurm_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its gate would not open either, and waits for no conversion."""
    made, came = walk(tmp_path), list[str]()
    monkeypatch.setattr(module, "await_conversion", lambda *_: came.append("answers"))
    monkeypatch.setattr(Walk, "gate", lambda *_: came.append("gate"))
    said: dict[str, Any] = {"daemons": {"slurmdbd": "active"}, "broken": [], "packages": {}}
    vars(made.state).update(left=["login1"], looks=lambda _: {"ctl1": said})
    made.start()
    assert came == ["answers", "gate"]
    said["daemons"]["slurmctld"] = "inactive"
    made.start()
    assert came == ["answers", "gate", "answers"]


@pytest.mark.parametrize(("built", "source"), [(True, "distribution"), (False, "schedmd")])
def test_packages_of_another_source_are_no_upgrade(tmp_path: Path, built: bool, source: str) -> None:  # noqa: FBT001
    made = walk(tmp_path)
    files = {"group_vars/all.yml": f"slurm_packages_source: {source}\n"}
    vars(made.run).update(site=read_site(write_site(tmp_path, files=files)))
    said = {"packages": {"slurmctld": "24.11.5-1"}, "broken": [], "built": built, "daemons": {}}
    vars(made.state).update(looks=lambda _: {"ctl1": said})
    with pytest.raises(DeployError, match=f"slurm_packages_source: {source} says.*slurm-source-differs"):
        made.refuse()
