from dataclasses import replace

import pytest

from deploy.errors import Finding, Severity
from deploy.judge.convergence import Convergence
from deploy.judge.drift import Drift, HostState, PhaseState
from deploy.judge.host import Judge, Promise
from deploy.judge.node_status import Clock, NodeStatus, Reach, SlurmNode
from tests.unit.judge.statuses import NOW, service

AGAIN = "deploy cluster inv.ini --limit node1"
CHECK = "deploy check inv.ini --limit node1"
PLAN = "deploy plan inv.ini --limit node1"
RESUME = "deploy node resume inv.ini node1"
REPAIR = "deploy node repair inv.ini node1"
NODE = Promise(AGAIN, CHECK, PLAN, RESUME, REPAIR, "ctl1", is_node=True, optional=frozenset({"sackd"}))
WELL = NodeStatus(
    "node1",
    Reach.ANSWERED,
    services=(service("chrony", seconds=900.0), service("munge"), service("slurmd")),
    shortfalls=(),
    clock=Clock(-0.01, 0.01, synchronized=True),
    slurm=SlurmNode(("IDLE",), "", "", None),
    convergence=Convergence(NOW - 60, "1.0", "run"),
)
LOST = Finding("node1", "host-unreachable", "no route", "ssh 10.0.0.11")
SLURMD_DOWN = (service("chrony"), service("munge"), service("slurmd", "failed", result="exit-code"))


def _said(
    status: NodeStatus, *, promise: Promise = NODE, is_slurm_known: bool = True
) -> list[tuple[str, str]]:
    found = Judge(status, promise, NOW, is_slurm_known=is_slurm_known).findings()
    assert {finding.where for finding in found} <= {"node1"}
    return [(finding.reference, finding.message) for finding in found]


def test_nothing_is_wrong_with_a_healthy_node() -> None:
    assert _said(WELL) == []


@pytest.mark.parametrize(
    ("change", "reference", "message"),
    [
        ({"services": SLURMD_DOWN}, "service-down", "slurmd failed for 3 min (exit-code)"),
        (
            {"services": (*WELL.services[:2], service("slurmd", "activating"))},
            "service-down",
            "slurmd activating for 3 min",
        ),
        (
            {"services": (*WELL.services[:2], service("slurmd", "inactive", load="not-found"))},
            "service-down",
            "slurmd is not installed",
        ),
        ({"slurm_silence": "scontrol: no"}, "slurm-silent", "Slurm does not report its nodes: scontrol: no"),
        ({"failed_units": ("a.service", "b.mount")}, "unit-failed", "2 failed units: a.service, b.mount"),
        (
            {"shortfalls": ("gpus: the contract says 2, the machine shows 1",)},
            "hardware-below-contract",
            "gpus: the contract says 2, the machine shows 1",
        ),
        ({"clock": Clock(4.8, 5.0)}, "clock-off", "the clock is 4.8 s ahead of this machine's"),
        ({"clock": Clock(-9.0, -4.8)}, "clock-off", "the clock is 4.8 s behind this machine's"),
        (
            {"clock": Clock(-0.1, 0.1, synchronized=False)},
            "clock-unsynchronized",
            "chrony has found no time server that answers",
        ),
        (
            {"slurm": SlurmNode(("IDLE", "DRAIN"), "bad disk", "root", NOW - 300)},
            "node-drained",
            "drained: bad disk (root, 5 min ago)",
        ),
        (
            {"slurm": SlurmNode(("DOWN", "NOT_RESPONDING"), "Not responding", "slurm", NOW - 300)},
            "node-down",
            "Slurm says down*: Not responding (slurm, 5 min ago)",
        ),
        ({"slurm": SlurmNode(("IDLE", "NOT_RESPONDING"), "", "", None)}, "node-down", "Slurm says idle*"),
        ({"slurm": None}, "node-not-in-slurm", "slurmctld does not know it"),
        ({"convergence": None}, "never-converged", "no recorded run has converged it"),
        ({"reach": Reach.UNREACHABLE, "causes": (LOST,)}, "host-unreachable", "no route"),
        ({"reach": Reach.FAILED, "trouble": "lscpu: broken"}, "status-unknown", "lscpu: broken"),
    ],
)
def test_one_thing_is_wrong(change: dict[str, object], reference: str, message: str) -> None:
    assert _said(replace(WELL, **change)) == [(reference, message)]  # type: ignore[arg-type]


@pytest.mark.parametrize("added", ["", " : Not responding"])
def test_a_drain_of_deploys_is_released_by_deploy(added: str) -> None:
    (found,) = Judge(
        replace(WELL, slurm=SlurmNode(("IDLE", "DRAIN"), f"deploy: disk (alice){added}", "root", NOW)),
        NODE,
        NOW,
        is_slurm_known=True,
    ).findings()
    assert (found.reference, found.hint) == ("node-drained", f"{RESUME} --by alice")


@pytest.mark.parametrize(
    "reason",
    ["node_health: munge is failed", "Kill task failed", "deploy: repair: gpus: the contract says 2 (alice)"],
)
def test_a_node_with_a_fault_is_for_repair(reason: str) -> None:
    status = replace(WELL, slurm=SlurmNode(("IDLE", "DRAIN"), reason, "root", NOW))
    (found,) = Judge(status, NODE, NOW, is_slurm_known=True).findings()
    assert found.hint == REPAIR


def test_hints_are_commands() -> None:
    bad = replace(
        WELL,
        services=SLURMD_DOWN,
        slurm=SlurmNode(("IDLE", "DRAIN"), "x", "root", None),
        failed_units=("slurmd.service", "odd.service"),
    )
    assert [finding.hint for finding in Judge(bad, NODE, NOW, is_slurm_known=True).findings()] == [
        f"{AGAIN}   (on node1, why: systemctl status slurmd)",
        "systemctl --failed   (on node1)",
        "scontrol update nodename=node1 state=resume   (on ctl1, when it is fit)",
    ]


def test_only_warnings_leave_a_host_well() -> None:
    judge = Judge(replace(WELL, convergence=None, failed_units=("x",)), NODE, NOW, is_slurm_known=True)
    assert {finding.severity for finding in judge.findings()} == {Severity.WARNING}


def test_what_slurm_lost_because_of_something_said_is_not_said_twice() -> None:
    down = SlurmNode(("DOWN", "NOT_RESPONDING"), "Not responding", "slurm", NOW)
    assert [name for name, _ in _said(replace(WELL, services=SLURMD_DOWN, slurm=down))] == ["service-down"]
    lost = replace(WELL, reach=Reach.UNREACHABLE, causes=(LOST,), services=(), slurm=down)
    assert [name for name, _ in _said(lost)] == ["host-unreachable"]
    by_hand = replace(lost, slurm=replace(down, by="root"))
    assert [name for name, _ in _said(by_hand)] == ["host-unreachable", "node-down"]


def _drifted(*drift: Drift) -> HostState:
    return HostState((PhaseState("compute", is_current=True, drift=drift),))


def test_drift_is_named_whoever_has_the_journal() -> None:
    """A journal keeps fifty runs of one copy of the site; the records are on the host."""
    record = replace(_drifted(Drift("files", "/etc/slurm/slurm.conf", "a", "b")), unrecorded=("scratch",))
    assert [name for name, _ in _said(replace(WELL, record=record, convergence=None))] == [
        "never-converged",
        "host-drifted",
        "site-changed",
    ]


def test_drift_is_named() -> None:
    record = _drifted(Drift("packages", "munge", "2", None), Drift("probe", "the ruleset", "a", "b"))
    said = _said(replace(WELL, record=record))
    assert said == [("host-drifted", "package munge is missing; the ruleset differs")]


def test_drift_that_another_finding_tells_of_is_not_said_twice() -> None:
    record = _drifted(
        Drift("services", "slurmd", (("runs", True),), (("runs", False),)),
        Drift("hardware", "gpus", 2, 1),
        Drift("probe", "what slurmd runs with", "a", "failed"),
    )
    status = replace(WELL, record=record, services=SLURMD_DOWN, shortfalls=("gpus: x",))
    assert [name for name, _ in _said(status)] == ["service-down", "hardware-below-contract"]


def test_a_site_that_changed_since_is_a_warning() -> None:
    record = HostState((PhaseState("base", is_current=False, drift=()),), unrecorded=("scratch",))
    assert _said(replace(WELL, record=record)) == [
        ("site-changed", "not as the site says now: base, scratch")
    ]


def test_what_a_run_left_to_a_later_one_is_said_until_it_is_done() -> None:
    record = HostState(unrecorded=("base", "scratch"), pending={"base": ("needrestart may restart munge",)})
    said = [("left-to-a-later-run", "needrestart may restart munge")]
    changed = ("site-changed", "not as the site says now: scratch")
    assert _said(replace(WELL, record=record)) == [*said, changed]
    never = _said(replace(WELL, record=record, convergence=None))
    assert [name for name, _ in never] == ["never-converged", "left-to-a-later-run"]


def test_a_host_that_deploy_has_not_been_to_is_one_finding() -> None:
    missing = (
        service("munge", "inactive", load="not-found"),
        service("slurmd", "inactive", load="not-found"),
    )
    new = replace(WELL, services=missing, slurm=None, convergence=None)
    assert _said(new) == [("never-converged", "deploy has not been here yet: there is no munge, slurmd")]


def test_what_a_site_declares_since_hides_nothing_else_of_a_host() -> None:
    """Its service is not there yet, but deploy has been."""
    declared = (*WELL.services, service("mail", "inactive", load="not-found"))
    references = [name for name, _ in _said(replace(WELL, services=declared, clock=Clock(59.0, 60.0)))]
    assert references == ["service-down", "clock-off"]


def test_a_daemon_that_the_release_does_not_have_is_not_missed() -> None:
    login = Promise(AGAIN, CHECK, PLAN, RESUME, REPAIR, "ctl1", is_node=False, optional=frozenset({"sackd"}))
    status = replace(WELL, services=(service("sackd", "inactive", load="not-found"),), slurm=None)
    assert _said(status, promise=login) == []
    stopped = replace(status, services=(service("sackd", "inactive"),))
    assert _said(stopped, promise=login) == [("service-down", "sackd inactive for 3 min")]


def test_a_node_is_not_missed_in_a_slurm_that_says_nothing() -> None:
    assert _said(replace(WELL, slurm=None), is_slurm_known=False) == []


def test_a_clock_has_time_to_synchronize() -> None:
    young = (service("chrony", seconds=10.0), *WELL.services[1:])
    assert _said(replace(WELL, services=young, clock=Clock(-0.1, 0.1, synchronized=False))) == []
