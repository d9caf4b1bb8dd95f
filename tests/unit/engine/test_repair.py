"""Repairs of nodes: which remedy comes when, what stays drained, and what is whose."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ClusterShell.NodeSet import NodeSet

from deploy.engine import alerts, batches, dossier, drains, fit, proving
from deploy.engine import repair as module
from deploy.engine.alerts import Alerts
from deploy.engine.batches import Share, StoppedError
from deploy.engine.drains import Way
from deploy.engine.fit import Fault
from deploy.engine.options import Options
from deploy.engine.remedies import Remedy, next_remedy, remedies
from deploy.engine.repair import Asked, Repaired
from deploy.engine.run import Run
from deploy.errors import ExitCode, Finding, error
from deploy.run import drains as on_controller
from deploy.run.ssh import Unanswered
from tests.unit.run.slurm import Slurm
from tests.unit.site.sites import write_site

SITE = "[slurm-master]\nctl1 ansible_host=10.0.0.1\n[slurm-node]\n" + "".join(
    f"node{number} ansible_host=10.0.0.{number + 1}\n" for number in (1, 2, 3)
)
MUNGE = ["service", "munge", "munge is failed"]
LOST_GPU = ["hardware", "", "gpus: the contract says 2, the machine shows 1"]
ECC = Fault("gpu", "3", "alert GpuMemoryErrors: GPU 3 of node1 had memory errors", "GpuMemoryErrors")
UNTIL = "it is registered with Slurm and its health check passes"
PROVEN = f"{UNTIL}, and so do its checks and jobs of deploy validate"
QUIET = f"{PROVEN}, and these alerts are quiet: GpuMemoryErrors"
OURS = "deploy: repair: munge is failed (alice)"


@contextmanager
def nobody_else(*_: object, **__: object) -> Iterator[float]:
    yield 0.0


class Machines:
    """Nodes with faults, each with the remedies that mend it."""

    def __init__(self, slurm: Slurm) -> None:
        self.slurm = slurm
        self.faults: dict[str, list[list[str]]] = {}
        self.mended_by: dict[str, str] = {}
        self.log: list[str] = []
        self.stays_off: set[str] = set()
        self.boots = dict.fromkeys(slurm.reasons, 1)
        self.firing: dict[str, Fault] = {}
        self.quieted_by: dict[str, str] = {}
        self.unasked = ""
        self.failing: dict[str, tuple[str, ...]] = {}
        self.proven: list[str] = []
        self.spoiled: dict[str, tuple[str, ...]] = {}
        """What jobs find wrong, by node."""
        self.worked: list[tuple[str, ...]] = []

    def jobs(
        self, _: Run, names: Collection[str], reservation: str, *, burn_in_hours: float
    ) -> dict[str, tuple[str, ...]]:
        """Jobs of the validation user: nobody else may have any on these nodes."""
        reserved = self.slurm.reservations[reservation]
        assert (reserved["Users"], reserved["StartTime"][:2]) == ("deploy-validate", "20")
        assert NodeSet(reserved["Nodes"]) == NodeSet.fromlist([*names])
        assert not any(self.slurm.reasons[name] for name in names), "drained, so no job can run"
        self.worked.append((*names, f"{burn_in_hours:g} h"))
        return {name: said for name, said in self.spoiled.items() if name in names}

    def alerts(self, run: Run) -> Alerts:
        assert run.place.is_dir(), "the run is over"
        if self.unasked:
            return Alerts(why=self.unasked)
        return Alerts({name: (fault,) for name, fault in self.firing.items()})

    def checks(self, run: Run, names: Collection[str]) -> dict[str, tuple[str, ...]]:
        assert run.place.is_dir(), "the run is over"
        for name in names:
            assert self.slurm.reasons[name], "not drained"
            self.proven += [name] * (name not in self.proven)
        return {name: said for name, said in self.failing.items() if name in names}

    def done(self, node: str, what: str) -> None:
        assert self.slurm.reasons[node], "not drained"
        self.log.append(f"{node}: {what}")
        if self.mended_by.get(node) == what:
            self.faults.pop(node, None)
        if self.quieted_by.get(node) == what:
            self.firing.pop(node, None)

    def ask(self, questions: Mapping[str, Any], *_: object, **__: object) -> dict[str, Any]:
        return {name: getattr(self, f"_{verb}")(name) for name, (verb, _) in questions.items()}

    def _boot(self, name: str) -> object:
        is_off = name in self.stays_off and self.boots[name] > 1
        return Unanswered("No route to host") if is_off else str(self.boots[name])

    def _reboot(self, name: str) -> object:
        self.done(name, "reboot")
        self.boots[name] += 1
        return Unanswered("Connection closed")

    def _faults(self, name: str) -> object:
        return Unanswered("off") if name in self.stays_off else [[*it] for it in self.faults.get(name, [])]

    def _settle(self, name: str) -> str:
        self.slurm.reasons[name] = ""
        return ""

    def remedy(self, questions: Mapping[str, Any], *_: object, **__: object) -> dict[str, Any]:
        ((name, (verb, arguments)),) = questions.items()
        if verb == "dossier":
            return {name: {"machine": "product_serial: 4711"}}
        self.done(name, f"{verb} {arguments['subject']}".strip() if arguments else verb)
        return {name: ""}


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    slurm = Slurm(tmp_path)
    made = Machines(slurm)
    monkeypatch.setattr(on_controller, "_run", slurm.run)
    monkeypatch.setattr(on_controller, "LEDGER", tmp_path / "ledger/drains.json")
    monkeypatch.setenv("SUDO_USER", "alice")
    monkeypatch.setattr(fit, "ask", made.ask)
    monkeypatch.setattr(module, "ask", made.remedy)
    monkeypatch.setattr(alerts, "look", made.alerts)
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0)
    monkeypatch.setattr(module, "failing_checks", made.checks)
    monkeypatch.setattr(module, "_PROOF_PAUSE", 0)
    monkeypatch.setattr(proving, "failing_jobs", made.jobs)
    monkeypatch.setattr(dossier, "ask", made.remedy)
    monkeypatch.setattr(module, "alone", nobody_else)
    monkeypatch.setattr(fit, "_POLL_SECONDS", 0)
    monkeypatch.setattr(module, "_POLL_SECONDS", 0)
    monkeypatch.setattr(module, "_EFFECT_SECONDS", 0)
    monkeypatch.setattr(drains, "_POLL_SECONDS", 0)
    minutes = iter(range(0, 10**6, 60))
    monkeypatch.setattr("deploy.engine.fit.time.monotonic", lambda: float(next(minutes)))

    class Converged:
        exit_code = ExitCode.OK

    def converge(_: Path, options: Options, *__: object) -> Converged:
        made.done(str(options.limit), "converge")
        return Converged()

    monkeypatch.setattr(module, "deploy_cluster", converge)
    verbs: dict[str, Callable[..., Any]] = {
        name: getattr(on_controller, name)
        for name in ("listed", "drain", "lend", "resume", "hold", "resume_of_slurm", "remedies", "end")
    }

    def ask(questions: Mapping[str, Any], *_: object, **__: object) -> dict[str, Any]:
        ((name, (verb, arguments)),) = questions.items()
        return {name: verbs[verb](**arguments)}

    monkeypatch.setattr(drains, "ask", ask)
    return made


def repaired(
    tmp_path: Path,
    nodes: str | None = None,
    budget: Share | None = None,
    *,
    hours: float = 0,
    votes: str = "",
) -> Repaired:
    inventory = write_site(tmp_path, SITE + votes)
    asked = Asked(Way(), lambda: False, budget, hours)
    display: Any = None
    return module.repair(inventory, nodes, asked, Options(), display=display, say=print)


def stopped(tmp_path: Path, budget: Share | None = None) -> dict[str, str]:
    with pytest.raises(StoppedError) as problem:
        repaired(tmp_path, budget=budget)
    return dict(problem.value.course.bad)


def test_what_spares_jobs_comes_first_and_a_reboot_last() -> None:
    faults = [Fault("gpu", "3", "x"), Fault("service", "munge", "x"), Fault("mount", "/home", "x")]
    order = [str(remedy) for remedy in remedies(faults)]
    assert order == ["restart munge", "mount /home", "reset gpu 3", "converge", "reboot"]
    assert next_remedy(faults, {Remedy("restart", "munge")}) == Remedy("mount", "/home")
    assert next_remedy([Fault("silent host", "", "x")], ()) is None


@pytest.mark.parametrize("kind", ["silent", "read-only"])
def test_no_file_system_is_taken_from_jobs(kind: str) -> None:
    found = [*remedies([Fault(kind, "/data", "x")])]
    assert [(str(remedy), remedy.spares_jobs) for remedy in found] == [
        ("remount /data", False),
        ("reboot", False),
    ]


def test_the_first_remedy_that_helps_is_the_last(machines: Machines, tmp_path: Path) -> None:
    machines.slurm.reasons["node1"] = "node_health: munge is failed"
    machines.faults, machines.mended_by = {"node1": [MUNGE]}, {"node1": "restart munge"}
    came = repaired(tmp_path)
    assert [(node.name, node.is_drained) for node in came.repaired] == [("node1", False)]
    assert machines.log == ["node1: restart munge"]
    assert {*machines.slurm.reasons.values()} == {""}


def test_each_node_goes_as_far_up_its_ladder_as_it_must(machines: Machines, tmp_path: Path) -> None:
    machines.faults = {"node1": [MUNGE], "node2": [LOST_GPU], "node3": [MUNGE]}
    machines.mended_by = {"node1": "converge", "node2": "reboot", "node3": "restart munge"}
    assert len(repaired(tmp_path, "node[1-3]").repaired) == 3
    assert machines.log == [
        "node1: restart munge",
        "node3: restart munge",
        "node2: reboot",
        "node1: converge",
    ]


VOTES = "[slurm-database]\nnode1\nnode2\nnode3\n"
MISSING = Finding("node3", "members-missing", "2 of 3 have a vote", "start it")


def test_of_those_with_a_vote_on_the_database_one_reboots_at_a_time(
    machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(*_: object) -> list[Finding]:
        machines.log.append("it is asked")
        return []

    monkeypatch.setattr(batches, "half_database", look)
    monkeypatch.setattr(batches, "whole_again", look)
    machines.faults = {"node1": [LOST_GPU], "node2": [LOST_GPU]}
    machines.mended_by = dict.fromkeys(("node1", "node2"), "reboot")
    assert len(repaired(tmp_path, "node[1-2]", votes=VOTES).repaired) == 2
    assert machines.log == [
        "it is asked",
        "node1: reboot",
        "it is asked",
        "it is asked",
        "node2: reboot",
        "it is asked",
    ]


def test_one_that_has_no_vote_again_stays_drained_and_the_next_one_is_left_alone(
    machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Finding] = []

    def after(*_: object) -> list[Finding]:
        found.append(MISSING)
        return found

    monkeypatch.setattr(batches, "half_database", lambda *_: found)
    monkeypatch.setattr(batches, "whole_again", after)
    machines.faults = {"node1": [LOST_GPU], "node2": [LOST_GPU]}
    machines.mended_by = dict.fromkeys(("node1", "node2"), "reboot")
    with pytest.raises(StoppedError) as problem:
        repaired(tmp_path, "node[1-2]", votes=VOTES)
    said = "node3: 2 of 3 have a vote"
    assert problem.value.course.bad == {
        "node1": said,
        "node2": f"not rebooted, the database would not go on without it: {said}",
    }
    assert machines.log == ["node1: reboot"]


def test_a_node_that_cannot_be_mended_stays_drained_with_its_dossier(
    machines: Machines, tmp_path: Path
) -> None:
    machines.slurm.reasons["node2"] = "node_health: munge is failed"
    machines.faults, machines.mended_by = {"node1": [MUNGE], "node2": [MUNGE]}, {"node1": "restart munge"}
    machines.slurm.reasons["node1"] = "node_health: munge is failed"
    assert stopped(tmp_path) == {"node2": "munge is failed"}
    assert machines.slurm.reasons == {"node1": "", "node2": OURS, "node3": ""}
    (path,) = (tmp_path / ".deploy/dossiers").iterdir()
    assert path.stat().st_mode & 0o077 == 0
    text = path.read_text()
    assert text.startswith("node2: munge is failed\n")
    for line in ("restart munge: done", "converge: done", "reboot: done", "product_serial: 4711"):
        assert line in text
    (held,) = [entry for entry in on_controller.listed()["held"] if not entry.get("is_foreign")]
    assert held["until"] == PROVEN
    # Once somebody changed the part, the same command takes it into service.
    del machines.faults["node2"]
    assert [node.is_drained for node in repaired(tmp_path).repaired] == [False]
    assert {*machines.slurm.reasons.values()} == {""}


def test_what_somebody_decided_stays(machines: Machines, tmp_path: Path) -> None:
    machines.slurm.reasons["node1"] = "fan, alice"
    machines.faults = {"node1": [MUNGE]}
    assert repaired(tmp_path) == Repaired()
    assert machines.log == []
    machines.mended_by = {"node1": "restart munge"}
    assert [node.is_drained for node in repaired(tmp_path, "node1").repaired] == [True]
    assert machines.slurm.reasons["node1"] == "fan, alice"


def test_what_slurm_drained_itself_is_looked_at_and_resumed(machines: Machines, tmp_path: Path) -> None:
    machines.slurm.reasons["node1"] = "Kill task failed"
    assert [node.is_drained for node in repaired(tmp_path).repaired] == [False]
    assert machines.log == ["node1: leftovers"]
    machines.slurm.reasons["node1"] = "Kill task failed, says alice"
    assert repaired(tmp_path) == Repaired()


def test_a_node_that_left_the_inventory_stops_nobody(machines: Machines, tmp_path: Path) -> None:
    machines.slurm.reasons |= {"node1": "node_health: munge is failed", "old": "node_health: munge is failed"}
    machines.faults, machines.mended_by = {"node1": [MUNGE]}, {"node1": "restart munge"}
    assert [node.name for node in repaired(tmp_path).repaired] == ["node1"]
    assert machines.slurm.reasons["old"] == "node_health: munge is failed"


def test_a_node_that_does_not_answer_is_for_somebodys_hands(machines: Machines, tmp_path: Path) -> None:
    machines.slurm.reasons["node1"], machines.stays_off = "node_health: munge is failed", {"node1"}
    assert stopped(tmp_path) == {"node1": "it does not answer: off"}
    assert machines.log == []


def test_by_itself_it_keeps_to_its_budget_and_repeats_nothing(machines: Machines, tmp_path: Path) -> None:
    for name in machines.slurm.reasons:
        machines.slurm.reasons[name] = "node_health: munge is failed"
        machines.faults[name] = [MUNGE]
    one = Share(5, is_percent=True)
    assert stopped(tmp_path, one) == {"node1": "munge is failed"}
    assert machines.log == [f"node1: {what}" for what in ("restart munge", "converge", "reboot")]
    machines.mended_by = {"node1": "restart munge", "node2": "restart munge"}
    came = repaired(tmp_path, budget=one)
    assert ([it.name for it in came.repaired], came.left) == (["node2"], ("node1", "node3"))
    assert machines.log[3:] == ["node2: restart munge"]


def test_by_itself_it_waits_for_no_job_and_ends_none(machines: Machines, tmp_path: Path) -> None:
    machines.slurm.reasons["node2"], machines.slurm.jobs = "node_health: gpus", "17|bob|node2\n"
    machines.faults, machines.mended_by = {"node2": [LOST_GPU]}, {"node2": "reboot"}
    assert stopped(tmp_path, Share(1)) == {"node2": f"{LOST_GPU[2]}; reboot waits for the end of 17 (bob)"}
    assert machines.log == []
    machines.slurm.jobs = ""
    assert len(repaired(tmp_path, budget=Share(1)).repaired) == 1


def held(name: str) -> list[tuple[str, str]]:
    return [
        (entry["why"], entry["until"]) for entry in on_controller.listed()["held"] if entry["node"] == name
    ]


def test_a_node_with_an_alert_is_taken_out_and_back_when_it_is_quiet(
    machines: Machines, tmp_path: Path
) -> None:
    machines.firing, machines.quieted_by = {"node1": ECC}, {"node1": "reset_gpu 3"}
    came = repaired(tmp_path)
    assert [(node.name, node.is_drained) for node in came.repaired] == [("node1", False)]
    assert machines.log == ["node1: reset_gpu 3"]


def test_what_jobs_there_wait_for_is_said_by_the_reason(machines: Machines, tmp_path: Path) -> None:
    machines.firing, machines.slurm.jobs = {"node1": ECC}, "17|bob|node1\n"
    bad = stopped(tmp_path, Share(1))
    assert bad == {"node1": f"{ECC.words}; reset gpu 3 waits for the end of 17 (bob)"}
    assert machines.slurm.reasons["node1"].startswith(f"deploy: repair: {ECC.words}")
    assert machines.log == []
    assert [until for _, until in held("node1")] == [QUIET]


def test_an_alert_that_looks_back_gets_one_remedy_and_holds_the_node(
    machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines.firing = {"node1": ECC}
    assert stopped(tmp_path, Share(2)) == {"node1": ECC.words}
    assert machines.log == ["node1: reset_gpu 3"]
    assert held("node1") == [(f"repair: {ECC.words}", QUIET)]
    # It may fire for an hour yet: nothing more is done meanwhile.
    assert repaired(tmp_path, budget=Share(2)) == Repaired(left=("node1",))
    # Where it does so later, the next remedy is tried; when all were, it is for somebody's hands.
    monkeypatch.setattr(module, "_LOOKS_BACK", 0)
    assert stopped(tmp_path, Share(2)) == {"node1": ECC.words}
    assert machines.log == ["node1: reset_gpu 3", "node1: reboot"]
    assert repaired(tmp_path, budget=Share(2)).left == ("node1",)
    machines.firing = {}
    assert [node.is_drained for node in repaired(tmp_path, budget=Share(2)).repaired] == [False]
    assert {*machines.slurm.reasons.values()} == {""}


def test_a_remedy_that_fails_is_followed_by_the_next(
    machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines.firing, machines.quieted_by = {"node1": ECC}, {"node1": "reboot"}
    monkeypatch.setattr(module, "ask", lambda questions, *_, **__: dict.fromkeys(questions, "in use"))
    assert len(repaired(tmp_path).repaired) == 1
    assert machines.log == ["node1: reboot"]


def test_what_only_its_vendor_can_mend_is_taken_out_at_once(machines: Machines, tmp_path: Path) -> None:
    words = "alert GpuRowRemapFailed: GPU 3 cannot replace a bad row"
    machines.firing = {"node1": Fault("vendor", "", words, "GpuRowRemapFailed")}
    machines.slurm.jobs = "17|bob|node1\n"
    assert stopped(tmp_path, Share(1)) == {"node1": words}
    (path,) = (tmp_path / ".deploy/dossiers").iterdir()
    assert words in path.read_text()
    assert repaired(tmp_path, budget=Share(1)).left == ("node1",)


def test_a_node_that_an_admin_has_is_not_taken_for_an_alert(machines: Machines, tmp_path: Path) -> None:
    machines.slurm.reasons["node1"], machines.firing = "fan, alice", {"node1": ECC}
    assert repaired(tmp_path) == Repaired()
    assert machines.log == []


def test_alerts_that_are_wrong_themselves_do_not_empty_the_cluster(
    machines: Machines, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machines.firing = dict.fromkeys(machines.slurm.reasons, ECC)
    assert stopped(tmp_path, Share(1)) == {"node1": ECC.words}
    assert repaired(tmp_path, budget=Share(1)) == Repaired(left=("node1", "node2", "node3"))
    assert [bool(reason) for reason in machines.slurm.reasons.values()] == [True, False, False]
    said = "node[2-3]: not taken, although not fit: repairs have 1 nodes out of service, and 1 is the most"
    assert said in capsys.readouterr().out


def test_while_nobody_knows_whether_its_alert_is_quiet_a_node_stays(
    machines: Machines, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machines.firing = {"node1": ECC}
    stopped(tmp_path)
    machines.unasked, machines.firing = "Prometheus at u: refused", {}
    machines.slurm.reasons["node2"] = "node_health: munge is failed"
    machines.faults, machines.mended_by = {"node2": [MUNGE]}, {"node2": "restart munge"}
    why = "it is not known whether GpuMemoryErrors still fires: Prometheus at u: refused"
    assert stopped(tmp_path) == {"node1": why}
    assert "alerts are not looked at: Prometheus at u: refused" in capsys.readouterr().out
    assert held("node1") == [(f"repair: {why}", QUIET)]
    # All else goes on.
    assert machines.slurm.reasons["node2"] == ""


def test_what_was_done_gently_needs_no_more_proof(machines: Machines, tmp_path: Path) -> None:
    machines.faults = {"node1": [MUNGE], "node2": [LOST_GPU], "node3": [["gpu", "1", "GPU 1: it is lost"]]}
    machines.mended_by = {"node1": "restart munge", "node2": "reboot", "node3": "reset_gpu 1"}
    assert len(repaired(tmp_path, "node[1-3]").repaired) == 3
    assert machines.proven == ["node2", "node3"]


def test_a_node_that_fails_a_check_after_its_reboot_stays_drained(machines: Machines, tmp_path: Path) -> None:
    why = "check mounts: not mounted: /scratch"
    machines.faults, machines.mended_by = {"node2": [LOST_GPU]}, {"node2": "reboot"}
    machines.failing = {"node2": (why, "check clock: it is 3 s ahead")}
    with pytest.raises(StoppedError) as problem:
        repaired(tmp_path, "node2")
    assert problem.value.course.bad == {"node2": f"{why}; check clock: it is 3 s ahead"}
    assert held("node2") == [(f"repair: {why}; check clock: it is 3 s ahead", PROVEN)]
    (path,) = (tmp_path / ".deploy/dossiers").iterdir()
    assert why in path.read_text()
    # Whoever mounts it has the same command prove that, although nothing is left to do.
    machines.failing, machines.proven = {}, []
    assert [node.is_drained for node in repaired(tmp_path).repaired] == [False]
    assert machines.proven == ["node2"]


def test_checks_that_cannot_be_made_prove_nothing(
    machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines.firing, machines.quieted_by = {"node1": ECC}, {"node1": "reset_gpu 3"}

    def silent(*_: object) -> dict[str, tuple[str, ...]]:
        raise error("hosts-not-asked", "Ansible could not ask the hosts", where="x", hint="y")

    monkeypatch.setattr(module, "failing_checks", silent)
    assert stopped(tmp_path) == {"node1": "its checks could not be made: Ansible could not ask the hosts"}


def test_jobs_prove_a_node_before_anybody_elses_begin(machines: Machines, tmp_path: Path) -> None:
    machines.faults = {"node1": [MUNGE], "node2": [LOST_GPU]}
    machines.mended_by = {"node1": "restart munge", "node2": "reboot"}
    assert len(repaired(tmp_path, "node[1-2]").repaired) == 2
    assert machines.worked == [("node2", "0 h")]
    assert (machines.slurm.reservations, {*machines.slurm.reasons.values()}) == ({}, {""})
    machines.slurm.reasons["node1"], machines.faults = "node_health: x", {"node1": [MUNGE]}
    assert len(repaired(tmp_path, "node1", hours=0.5).repaired) == 1
    assert machines.worked[1:] == [("node1", "0.5 h")]


def test_a_node_on_which_jobs_find_a_fault_stays_drained(machines: Machines, tmp_path: Path) -> None:
    machines.faults, machines.mended_by = {"node2": [LOST_GPU]}, {"node2": "reboot"}
    why = "check gpu-binding: a job with one GPU could open 2"
    machines.spoiled = {"node2": (why,)}
    with pytest.raises(StoppedError) as problem:
        repaired(tmp_path, "node2")
    assert problem.value.course.bad == {"node2": why}
    assert held("node2") == [(f"repair: {why}", PROVEN)]
    assert machines.slurm.reasons["node2"] == f"deploy: repair: {why} (alice)"
    assert machines.slurm.reservations == {}
    machines.spoiled = {}
    assert [node.is_drained for node in repaired(tmp_path).repaired] == [False]


def test_no_job_runs_on_a_node_that_somebody_else_holds(
    machines: Machines, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machines.slurm.reasons["node2"] = "fan, alice"
    machines.faults, machines.mended_by = {"node2": [LOST_GPU]}, {"node2": "reboot"}
    assert [node.is_drained for node in repaired(tmp_path, "node2").repaired] == [True]
    assert (machines.worked, machines.slurm.reasons["node2"]) == ([], "fan, alice")
    assert "node2: no jobs of deploy validate, because others hold it drained" in capsys.readouterr().out


def test_one_that_was_killed_while_jobs_ran_is_gone_on_with(
    machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines.faults, machines.mended_by = {"node2": [LOST_GPU]}, {"node2": "reboot"}

    def killed(*_: object, **__: object) -> None:
        monkeypatch.setattr(on_controller, "_run", lambda *_: ("it is gone", False))

    with monkeypatch.context() as patch:
        patch.setattr(proving, "failing_jobs", killed)
        with pytest.raises(on_controller.SilentError):
            repaired(tmp_path, "node2")
    monkeypatch.setattr(on_controller, "_run", machines.slurm.run)
    # The reservation keeps users' jobs away, and the next repair takes the node up.
    assert [made["Nodes"] for made in machines.slurm.reservations.values()] == ["node2"]
    assert [node.is_drained for node in repaired(tmp_path).repaired] == [False]
    assert (machines.slurm.reservations, machines.worked) == ({}, [("node2", "0 h")])
