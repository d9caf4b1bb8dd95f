"""Ansible that is started before it is known what to run."""

from pathlib import Path

import pytest

from deploy.run.events import Event, HostResult, RunEnded, Status
from deploy.run.execute import EarlyStart, RunRequest, execute
from deploy.run.settings import ansible_environment
from tests.integration.sites import LocalSite, eventually

TASK = """
- name: Write
  ansible.builtin.copy:
    content: "{{ word }}"
    dest: "{{ playbook_dir }}/{{ inventory_hostname }}.txt"
"""


def request(site: LocalSite, word: str) -> RunRequest:
    site.write(TASK)
    environment = ansible_environment(site.settings) | site.environment
    return RunRequest(site.playbook, (site.inventory,), (), ("--extra-vars", f"word={word}"), environment)


def statuses(events: list[Event]) -> set[Status]:
    return {event.status for event in events if isinstance(event, HostResult)}


def test_it_runs_what_it_is_told_later_and_the_next_run_starts_by_itself(either_site: LocalSite) -> None:
    wanted = request(either_site, "one")
    events: list[Event] = []
    with EarlyStart(wanted.environment, either_site.inventory) as early:
        assert not (either_site.directory / "node1.txt").exists()
        assert execute(wanted, events.append, early=early).rc == 0
        assert isinstance(events[-1], RunEnded)
        assert statuses(events) == {Status.CHANGED}
        assert (either_site.directory / "node1.txt").read_text() == "one"
        events.clear()
        assert execute(request(either_site, "two"), events.append, early=early).rc == 0
        assert (either_site.directory / "node1.txt").read_text() == "two"
    assert not either_site.processes()
    assert not list(either_site.scratch.iterdir())


def test_what_was_never_told_runs_nothing_and_leaves_nothing(site: LocalSite) -> None:
    wanted = request(site, "never")
    with pytest.raises(KeyboardInterrupt), EarlyStart(wanted.environment, site.inventory):
        raise KeyboardInterrupt
    assert not site.processes()
    assert not list(site.scratch.iterdir())
    assert not (site.directory / "node1.txt").exists()


def test_another_environment_is_started_anew(site: LocalSite) -> None:
    wanted = request(site, "one")
    other = {**wanted.environment, "ANSIBLE_FORKS": "1"}
    events: list[Event] = []
    with EarlyStart(other, site.inventory) as early:
        assert early.take(wanted) is None
        assert execute(wanted, events.append, early=early).rc == 0
    assert statuses(events) == {Status.CHANGED}
    assert not site.processes()


def test_the_list_of_processes_says_what_it_is_for(site: LocalSite) -> None:
    wanted = request(site, "never")
    expected = {b"ansible-playbook", b"--inventory", str(site.inventory).encode()}
    with EarlyStart(wanted.environment, site.inventory):
        eventually(lambda: any(expected <= words(pid) for pid in site.processes()), 10)


def words(pid: int) -> set[bytes]:
    """The command line of a process."""
    return set(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"))
