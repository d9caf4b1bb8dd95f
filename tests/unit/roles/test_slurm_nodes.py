from importlib import import_module

import pytest

from tests.unit.roles import loading

assert loading
slurm = import_module("ansible.module_utils.slurm_nodes")

NODE = "NodeName=node1 Arch=x86_64 CPUAlloc=0 State={state} ThreadsPerCore=1 {rest}"


@pytest.mark.parametrize(
    ("state", "rest", "flags", "told"),
    [
        ("IDLE", "Weight=1", {"IDLE"}, ("", "", "")),
        (
            "IDLE+DRAIN",
            "Reason=deploy: maintenance [root@2026-11-21T12:00:00]",
            {"IDLE", "DRAIN"},
            ("deploy: maintenance", "root", "2026-11-21T12:00:00"),
        ),
        (
            "DOWN*+DRAIN",
            "Reason=fan 3 [left] is broken [alice@2026-11-21T12:00:00] Comment=x",
            {"DOWN", "DRAIN"},
            ("fan 3 [left] is broken", "alice", "2026-11-21T12:00:00"),
        ),
        ("DOWN", "Reason=Not responding Comment=x", {"DOWN"}, ("Not responding", "", "")),
        ("IDLE~", "Extra=y", {"IDLE"}, ("", "", "")),
        ("IDLE+REBOOT^", "", {"IDLE", "REBOOT"}, ("", "", "")),
        ("MIXED+DRAIN+NOT_RESPONDING", "", {"MIXED", "DRAIN", "NOT_RESPONDING"}, ("", "", "")),
    ],
)
def test_node(state: str, rest: str, flags: set[str], told: tuple[str, str, str]) -> None:
    (node,) = slurm.parse_nodes(NODE.format(state=state, rest=rest) + "\n")
    assert (node.name, node.state, node.flags) == ("node1", state, flags)
    assert (node.reason, node.by, node.since) == told


def test_what_is_about_no_node_is_passed_over() -> None:
    assert slurm.parse_nodes("No nodes in the system\n") == []
