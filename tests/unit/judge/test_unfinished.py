"""What a run did not do is named by host, with its cause, and no host of it is called converged."""

from collections.abc import Iterable

from deploy.run.events import Ending, Event, Status
from deploy.show.summary import Summary, summarize
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
