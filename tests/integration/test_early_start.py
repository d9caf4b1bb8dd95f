"""Ansible that is started before it is known what to run."""

from pathlib import Path

import pytest

from deploy.run.events import Event, HostResult, Notice, RunEnded, Status
from deploy.run.execute import EarlyStart, RunRequest, execute
from deploy.run.settings import Settings, ansible_environment
from tests.integration.driver import HOSTS
from tests.integration.sites import LocalSite, eventually

TASK = """
- name: Write
  ansible.builtin.copy:
    content: "{{ word }}"
    dest: "{{ playbook_dir }}/{{ inventory_hostname }}.txt"
  tags: [write]

- name: Say how it is asked
  ansible.builtin.debug:
    msg: "{{ [ansible_check_mode, ansible_diff_mode, ansible_run_tags, ansible_limit | default('')] }}"
  tags: [say]
"""


def request(site: LocalSite, word: str, *arguments: str) -> RunRequest:
    site.write(TASK)
    environment = ansible_environment(site.settings) | site.environment
    given = ("--extra-vars", f"word={word}", *arguments)
    return RunRequest(site.playbook, (site.inventory,), (), given, environment)


def statuses(events: list[Event]) -> set[Status]:
    return {event.status for event in events if isinstance(event, HostResult)}


def test_it_runs_what_it_is_told_later_and_what_comes_after_that(either_site: LocalSite) -> None:
    wanted = request(either_site, "one")
    written = either_site.directory / "node1.txt"
    events: list[Event] = []
    with EarlyStart(wanted.environment, either_site.inventory) as early:
        assert not written.exists()
        assert execute(wanted, events.append, early=early).rc == 0
        assert isinstance(events[-1], RunEnded)
        assert statuses(events) == {Status.CHANGED, Status.OK}
        assert written.read_text() == "one"
        processes = either_site.processes()
        events.clear()
        looking = request(either_site, "two", "--check")
        assert execute(looking, events.append, early=early).rc == 0
        assert (statuses(events), written.read_text()) == ({Status.CHANGED, Status.OK}, "one")
        assert execute(request(either_site, "two"), events.append, early=early).rc == 0
        assert written.read_text() == "two"
        assert set(processes) & set(either_site.processes())
    assert not either_site.processes()
    assert not list(either_site.scratch.iterdir())


def test_every_run_has_its_own_options(site: LocalSite) -> None:
    asked: tuple[tuple[tuple[str, ...], list[object]], ...] = (
        (("--tags", "say"), [False, False, ["say"], ""]),
        (("--check", "--diff"), [True, True, ["all"], ""]),
        (("--tags", "say", "--limit", "node2"), [False, False, ["say"], "node2"]),
        (("--skip-tags", "write"), [False, False, ["all"], ""]),
    )
    environment = request(site, "").environment
    with EarlyStart(environment, site.inventory) as early:
        for arguments, expected in asked:
            events: list[Event] = []
            assert execute(request(site, "one", *arguments), events.append, early=early).rc == 0
            said = [e for e in events if isinstance(e, HostResult) and e.task.startswith("Say")]
            assert {e.message for e in said} == {str(expected)}
            assert not [e for e in events if isinstance(e, Notice)]
            assert {e.host for e in said} == ({"node2"} if "node2" in arguments else {"node1", "node2"})
    assert not (site.directory / "node1.txt").exists()


def test_what_fails_on_a_host_is_not_the_last(site: LocalSite) -> None:
    events: list[Event] = []
    wanted = request(site, "one")
    with EarlyStart(wanted.environment, site.inventory, at_once=False) as early:
        assert not site.processes()
        assert execute(request(site, "{{ undefined }}"), events.append, early=early).rc == 2
        processes = site.processes()
        assert statuses(events) == {Status.FAILED}
        assert execute(request(site, "one"), events.append, early=early).rc == 0
        assert set(processes) & set(site.processes())
    assert not site.processes()


def test_after_what_was_broken_off_another_one_is_started(site: LocalSite) -> None:
    wanted = request(site, "one")

    def break_off(_: Event) -> None:
        raise KeyboardInterrupt

    with EarlyStart(wanted.environment, site.inventory) as early:
        with pytest.raises(KeyboardInterrupt):
            execute(wanted, break_off, early=early)
        assert not site.processes()
        assert early.take(wanted) is None
        assert execute(wanted, lambda _: None, early=early).rc == 0
    assert (site.directory / "node1.txt").read_text() == "one"
    assert not site.processes()
    assert not list(site.scratch.iterdir())


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
    assert statuses(events) == {Status.CHANGED, Status.OK}
    assert not site.processes()


def test_plain_ansible_is_started_anew_for_every_run(site: LocalSite) -> None:
    site.settings = Settings(hosts=len(HOSTS), plain=True)
    wanted = request(site, "one")
    with EarlyStart(wanted.environment, site.inventory, is_served=False) as early:
        assert early.take(wanted) is None
        assert not site.processes()
        assert execute(wanted, lambda _: None, early=early).rc == 0
        assert not site.processes()
    assert (site.directory / "node1.txt").read_text() == "one"


def test_the_list_of_processes_says_what_it_is_for(site: LocalSite) -> None:
    wanted = request(site, "never")
    expected = {b"ansible-playbook", b"--inventory", str(site.inventory).encode()}
    with EarlyStart(wanted.environment, site.inventory):
        eventually(lambda: any(expected <= words(pid) for pid in site.processes()), 60)


def words(pid: int) -> set[bytes]:
    """The command line of a process."""
    return set(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"))
