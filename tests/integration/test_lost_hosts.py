"""A host that is lost in a task is unreachable; a module whose process is killed has failed."""

import pytest

from deploy.run.events import HostResult, Notice, Status
from tests.integration.sites import LocalSite

_KILL = """
import os
import re
import signal
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule


def main():
    module = AnsibleModule({"ancestor": {"type": "int"}})
    process = os.getpid()
    for _ in range(module.params["ancestor"]):
        process = int(re.search(r"^PPid:\\s*(\\d+)", Path(f"/proc/{process}/status").read_text(), re.M)[1])
    os.kill(process, signal.SIGKILL)
    signal.pause()


if __name__ == "__main__":
    main()
"""
_TASK = """
- name: Loses its process
  kill:
    ancestor: {ancestor}
  vars:
    mitogen_task_isolation: {isolation}
  when: inventory_hostname == 'node1'
- name: Goes on
  ansible.builtin.command: "true"
"""


def lost(site: LocalSite, ancestor: int, isolation: str) -> dict[str, HostResult]:
    """What is told of the last task of each host."""
    library = site.directory / "library"
    library.mkdir()
    (library / "kill.py").write_text(_KILL, encoding="utf-8")
    site.write(_TASK.format(ancestor=ancestor, isolation=isolation))
    finished = site.run()
    assert not [event for event in finished.events if isinstance(event, Notice)]
    return {event.host: event for event in finished.events if isinstance(event, HostResult)}


@pytest.mark.parametrize(("ancestor", "isolation"), [(0, "none"), (2, "fork")], ids=["in-place", "forked"])
def test_a_host_that_is_lost_is_unreachable(site: LocalSite, ancestor: int, isolation: str) -> None:
    said = lost(site, ancestor, isolation)
    assert said.pop("node1").status is Status.UNREACHABLE
    assert said
    assert {result.status for result in said.values()} == {Status.CHANGED}


def test_a_module_that_is_killed_has_failed(site: LocalSite) -> None:
    said = lost(site, 0, "fork")["node1"]
    assert said.status is Status.FAILED
    assert said.message.startswith("the module's process ended before it had an answer: something killed it")
