"""Nodes that have to be drained for a change are, a few at a time, with a stand-in for Slurm's programs."""

from pathlib import Path

import pytest

from deploy.content import ansible_config, roles
from tests.integration.sites import LocalSite

TASKS = """
- module_defaults:
    slurm_node_drain:
      configuration: {place}/slurm.conf
  environment:
    PATH: "{place}/bin:/usr/bin:/bin:/usr/sbin:/sbin"
  vars:
    reboot_controller: "{{{{ inventory_hostname }}}}"
    reboot_node: "{{{{ inventory_hostname }}}}"
    reboot_wait_for_jobs_minutes: 0
    __reboot_drain_marker: "{place}/notes/{{{{ inventory_hostname }}}}"
  block:
    - ansible.builtin.include_role: {{name: reboot, tasks_from: turn}}
    - ansible.builtin.include_tasks: change.yml
      loop: "{{{{ __reboot_turn.out_of_service }}}}"
    - ansible.builtin.include_tasks: change.yml
      loop: "{{{{ __reboot_turn.in_service }}}}"
"""
CHANGE = """
- ansible.builtin.include_role: {{name: reboot, tasks_from: drain}}
- ansible.builtin.shell: echo change {{{{ inventory_hostname }}}} >> {place}/log
- ansible.builtin.shell: test $(grep --count change {place}/log) -gt 1
  when: first_breaks | default(false)
- ansible.builtin.include_role: {{name: reboot, tasks_from: resume}}
"""
SCONTROL = """#!/bin/sh
cd {place}
by='[root@2026-11-25T03:00:00]'
case "$*" in
*State=DRAIN*) node=${{2#NodeName=}}; touch drained/$node; echo drain $node >> log ;;
*State=RESUME*) node=${{2#NodeName=}}; rm drained/$node; echo resume $node >> log ;;
*) if [ -e drained/$4 ]; then echo "NodeName=$4 State=IDLE+DRAIN Reason=deploy: maintenance $by"
   else echo "NodeName=$4 State=IDLE"; fi ;;
esac
"""
SINFO = """#!/bin/sh
for node in $(ls {place}/drained); do echo "$node|deploy: maintenance"; done
"""
SQUEUE = """#!/bin/sh
case "$*" in *--nodelist*) cat {place}/jobs ;; esac
"""


@pytest.fixture
def slurm(site: LocalSite) -> LocalSite:
    """A site whose two hosts are nodes in service."""
    place = site.directory
    for name in ("bin", "drained"):
        (place / name).mkdir()
    for name, text in (("scontrol", SCONTROL), ("sinfo", SINFO), ("squeue", SQUEUE)):
        program = place / "bin" / name
        program.write_text(text.format(place=place))
        program.chmod(0o755)
    for name in ("slurm.conf", "log", "jobs"):
        (place / name).touch()
    (place / "roles").symlink_to(roles())
    (place / "library").symlink_to(roles() / "reboot" / "library")  # where module_defaults look
    (place / "module_utils").symlink_to(ansible_config().parent / "module_utils")
    (place / "change.yml").write_text(CHANGE.format(place=place))
    site.write(TASKS.format(place=place))
    return site


def log(site: LocalSite) -> list[str]:
    return (site.directory / "log").read_text().splitlines()


def drained(site: LocalSite) -> list[str]:
    return sorted(path.name for path in (Path(site.directory) / "drained").iterdir())


def test_one_node_after_the_other(slurm: LocalSite) -> None:
    summary = slurm.run().summary
    assert all(host.is_good for host in summary.hosts.values())
    # Which one is first is for whichever answers first.
    first, second = (line.split()[1] for line in log(slurm)[::3])
    assert {first, second} == {"node1", "node2"}
    assert log(slurm) == [
        f"{what} {node}" for node in (first, second) for what in ("drain", "change", "resume")
    ]


def test_as_many_at_once_as_the_site_says(slurm: LocalSite) -> None:
    slurm.run("-e", "reboot_nodes_at_once=2")
    assert [line.split()[0] for line in log(slurm)] == ["drain"] * 2 + ["change"] * 2 + ["resume"] * 2


def test_a_node_that_does_not_come_back_keeps_the_others_in_service(slurm: LocalSite) -> None:
    finished = slurm.run("-e", '{"first_breaks": true}')
    (broken,) = drained(slurm)
    (other,) = {"node1", "node2"} - {broken}
    assert log(slurm) == [f"drain {broken}", f"change {broken}"]
    said = f"{other} stays in service, and nothing was changed there: deploy still has {broken} drained"
    assert said in str(finished.events)
    slurm.run()
    assert drained(slurm) == []
    assert log(slurm)[2:] == [
        *(f"{what} {broken}" for what in ("change", "resume")),
        *(f"{what} {other}" for what in ("drain", "change", "resume")),
    ]


def test_a_node_with_jobs_is_not_changed(slurm: LocalSite) -> None:
    (slurm.directory / "jobs").write_text("17 alice\n")
    finished = slurm.run()
    (node,) = drained(slurm)
    assert f"{node} is drained, and jobs still run there: 17 (alice)" in str(finished.events)
    assert log(slurm) == [f"drain {node}"]
