"""What a run did not do is named by host, with its cause, and no host of it is called converged."""

from collections.abc import Iterable

from deploy.judge.summary import Summary, summarize
from deploy.judge.unfinished import Phases
from deploy.run.events import Ending, Event, Planned, PlannedPhase, Status
from deploy.show.text import unfinished_lines
from tests.unit.show.runs import ended, phase_ended, planned, result, stats

_PLAN = planned(base="ctl1 node1 node2", database="ctl1", compute="node1 node2")
_BASE = phase_ended("base", "ctl1", "node1", "node2")


def told(*events: Event) -> Summary:
    hosts: Iterable[str] = ("ctl1", "node1", "node2")
    return summarize([_PLAN, *(result(host) for host in hosts), *events], hosts)


def failed(host: str, phase: str, status: Status = Status.FAILED) -> Event:
    return result(host, status, play=phase.upper(), phase=phase)


def test_a_run_that_did_all_of_its_plan() -> None:
    summary = told(_BASE, phase_ended("database", "ctl1"), phase_ended("compute", "node1", "node2"), ended())
    assert summary.not_run == ()
    assert all(host.is_good for host in summary.hosts.values())


def test_a_phase_with_one_host_fails_and_ansible_ends_the_playbook() -> None:
    summary = told(_BASE, failed("ctl1", "database"), phase_ended("database"), stats(), ended(2))
    assert unfinished_lines(summary) == ["not run  node[1-2]: COMPUTE: DATABASE failed on ctl1"]
    assert [host.not_run for host in summary.hosts.values()] == [0, 1, 1]
    assert not any(host.is_good for host in summary.hosts.values())


def test_a_host_that_failed_misses_what_comes_later() -> None:
    summary = told(
        phase_ended("base", "ctl1", "node2"),
        failed("node1", "base"),
        phase_ended("database", "ctl1"),
        phase_ended("compute", "node2"),
        stats(),
        ended(2),
    )
    assert unfinished_lines(summary) == ["not run  node1: COMPUTE: BASE failed on node1"]
    assert [name for name, host in summary.hosts.items() if host.is_good] == ["ctl1", "node2"]


def test_a_play_that_one_host_ends_for_all() -> None:
    summary = told(
        _BASE,
        phase_ended("database", "ctl1"),
        failed("node1", "compute", Status.UNREACHABLE),
        phase_ended("compute"),
        stats(),
        ended(4),
    )
    assert unfinished_lines(summary) == ["not run  node2: COMPUTE: COMPUTE could not reach node1"]
    assert [name for name, host in summary.hosts.items() if host.is_good] == ["ctl1"]


def test_a_run_that_was_interrupted() -> None:
    summary = told(_BASE, ended(130, Ending.CANCELLED))
    assert unfinished_lines(summary) == [
        "not run  ctl1: DATABASE: the run was interrupted",
        "not run  node[1-2]: COMPUTE: the run was interrupted",
    ]


def test_of_several_playbooks_the_last_plan_counts() -> None:
    summary = told(_BASE, ended(), planned(base="ctl1"), phase_ended("base", "ctl1"), ended())
    assert summary.not_run == ()


def phases(*events: Event) -> Phases:
    """The state of a plan in which the compute nodes need the database, and the plugin everywhere."""
    tracked = Phases()
    parts = {part.phase: part for part in planned(base="ctl1 node1 node2", logs="ctl1").phases}
    parts["plugin"] = PlannedPhase("plugin", "PLUGIN", ("ctl1", "node1", "node2"), ("base",))
    parts["database"] = PlannedPhase("database", "DATABASE", ("ctl1",), ("base",), ("plugin",))
    parts["compute"] = PlannedPhase("compute", "COMPUTE", ("node1", "node2"), ("base", "database"))
    for event in (Planned(0.0, tuple(parts.values())), *events):
        tracked.take(event)
    return tracked


def test_what_no_failure_stands_in_the_way_of_is_open() -> None:
    assert phases(_BASE, failed("ctl1", "logs"), phase_ended("logs")).open() == {
        "plugin": ("ctl1", "node1", "node2"),
        "database": ("ctl1",),
        "compute": ("node1", "node2"),
    }


def test_a_failure_is_in_the_way_of_its_own_host_alone() -> None:
    left = phases(phase_ended("base", "ctl1", "node2"), failed("node1", "base")).open()
    assert left == {"logs": ("ctl1",), "plugin": ("ctl1", "node2")}


def test_a_failure_on_another_host_is_in_the_way_where_the_phase_is_that_hosts_alone() -> None:
    done = phase_ended("plugin", "ctl1", "node1", "node2")
    assert phases(_BASE, phase_ended("logs", "ctl1"), done, failed("ctl1", "database")).open() == {}


def test_what_all_must_have_is_in_the_way_of_everybody() -> None:
    # node2 was taken out with node1, and can still have it; ctl1 has it and must not go on.
    tracked = phases(
        _BASE, phase_ended("logs", "ctl1"), failed("node1", "plugin"), phase_ended("plugin", "ctl1")
    )
    assert tracked.open() == {"plugin": ("node2",)}
    assert {part.phase: part.why for part in tracked.not_run()} == {
        "plugin": "PLUGIN failed on node1",
        "database": "PLUGIN failed on node1",
        "compute": "PLUGIN failed on node1",
    }


def test_a_host_that_cannot_be_reached_has_nothing_open() -> None:
    left = phases(failed("node1", "base", Status.UNREACHABLE), phase_ended("base", "ctl1", "node2")).open()
    assert "node1" not in {host for hosts in left.values() for host in hosts}


def test_a_machine_that_is_not_fit_refuses_all() -> None:
    assert phases(failed("node1", "check")).is_refused
    assert not phases(failed("node1", "base")).is_refused
