"""The first run of a site on machines that may serve a cluster already."""

from pathlib import Path
from typing import Any

import pytest

from deploy.engine.options import Options
from deploy.errors import DeployError, ExitCode
from tests.unit.engine.machines import NOTHING, Machines, machines
from tests.unit.site.sites import write_site

__all__ = ["machines"]

_UNDISCOVERED = {"group_vars/slurm-node.yml": "slurmd_weight: 1\n"}
_USED = {**NOTHING, "secrets": ["munge_key"]}


def never() -> bool:
    """Nobody may be asked."""
    raise AssertionError


def test_on_new_machines_nothing_is_planned_first(machines: Machines, tmp_path: Path) -> None:
    machines.run(write_site(tmp_path, files=_UNDISCOVERED), never)
    assert machines.ran == ["discover", "cluster"]
    assert {"secrets.yml", "hardware.yml"} <= {path.name for path in tmp_path.iterdir()}


def test_the_controller_is_told_its_hosts_once_before_the_work(machines: Machines, tmp_path: Path) -> None:
    machines.said["ctl1"] = {"records": {}, "left": [], "pending": {}, "hosts": {}, "slurm": ""}
    machines.run(write_site(tmp_path, files=_UNDISCOVERED), never)
    assert machines.wrote.count(("know", True)) == 1


@pytest.mark.parametrize("options", [Options(), Options(check=True)])
def test_a_key_that_the_site_does_not_know_is_refused_before_there_are_secrets(
    machines: Machines, tmp_path: Path, options: Options
) -> None:
    """The controller has no slurm.conf yet, and two machines serve a cluster with a key of its own."""
    machines.serves = {"node1": _USED, "node2": _USED}
    machines.strange = {"node1", "node2"}
    with pytest.raises(DeployError) as refused:
        machines.run(write_site(tmp_path, files=_UNDISCOVERED), never, options)
    assert refused.value.exit_code is ExitCode.BAD_INPUT
    assert [(found.reference, found.where) for found in refused.value.findings] == [
        ("unknown-secret", "node[1-2]")
    ]
    assert not {"secrets.yml", "hardware.yml"} & {path.name for path in tmp_path.iterdir()}


def test_machines_that_the_discovery_did_not_check_are_planned_first(
    machines: Machines, tmp_path: Path
) -> None:
    """Those of hardware.yml: what they have, only the plan learns."""
    contract = "node1: {cpus: 4, memory_mb: 8000, gpus: []}\n"
    machines.strange = {"node1"}
    inventory = write_site(tmp_path, files={**_UNDISCOVERED, "hardware.yml": contract})
    with pytest.raises(DeployError, match="unknown-secret"):
        machines.run(inventory, never)
    assert (tmp_path / "hardware.yml").read_text() == contract
    assert machines.ran == ["discover", "plan"]
    assert not (tmp_path / "secrets.yml").exists()


_OF_ANOTHER: dict[str, Any] = {
    **NOTHING,
    "cluster": {"file": "/run/slurm/conf/slurm.conf", "name": "cluster", "controllers": {"ctl0": "10.0.0.9"}},
}
_JOB = {"id": "7", "state": "RUNNING", "user": "alice", "partition": "gpu", "nodes": "node1"}


def test_a_controller_on_another_machine_needs_consent_before_anything_changes(
    machines: Machines, tmp_path: Path
) -> None:
    machines.serves = {"node1": _OF_ANOTHER, "node2": _OF_ANOTHER}
    machines.queues = {"node1": [_JOB]}
    inventory = write_site(tmp_path, files=_UNDISCOVERED)
    with pytest.raises(DeployError, match="job 7 of alice") as refused:
        machines.run(inventory, lambda: False)
    assert refused.value.exit_code is ExitCode.CHANGES_PENDING
    assert machines.ran == ["discover", "plan"]
    assert machines.asked == ["node1"]
    assert not {"secrets.yml", "hardware.yml"} & {path.name for path in tmp_path.iterdir()}
    assert machines.previewed == [machines.plan(inventory)]
    (loss,) = machines.previewed[0].losses
    assert (loss.before, loss.after, [job.id for job in loss.jobs]) == ("ctl0", "ctl1", ["7"])


def test_whoever_agrees_gets_the_new_controller(machines: Machines, tmp_path: Path) -> None:
    machines.serves = {"node1": _OF_ANOTHER}
    machines.run(write_site(tmp_path, files=_UNDISCOVERED), lambda: True)
    assert machines.ran == ["discover", "plan", "cluster"]
