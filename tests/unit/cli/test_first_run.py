"""The first run of a site on machines that may serve a cluster already."""

from pathlib import Path

import pytest

from deploy.cli.options import Options
from deploy.errors import DeployError, ExitCode
from deploy.judge.forecast import Forecast
from tests.unit.cli.machines import NOTHING, Machines, machines
from tests.unit.site.sites import write_site

__all__ = ["machines"]

_UNDISCOVERED = {"group_vars/slurm-node.yml": "slurmd_weight: 1\n"}
_USED = {**NOTHING, "secrets": ["munge_key"]}


def never(forecast: Forecast, command: str) -> None:
    """Nobody may be asked."""
    raise AssertionError(command, forecast)


def test_on_new_machines_nothing_is_planned_first(machines: Machines, tmp_path: Path) -> None:
    machines.run(write_site(tmp_path, files=_UNDISCOVERED), never)
    assert machines.ran == ["discover", "cluster"]
    assert (tmp_path / "secrets.yml").exists()


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
    assert not (tmp_path / "secrets.yml").exists()


def test_machines_that_the_discovery_did_not_check_are_planned_first(
    machines: Machines, tmp_path: Path
) -> None:
    """Those of hardware.yml: what they have, only the plan learns."""
    contract = "node1: {cpus: 4, memory_mb: 8000, gpus: []}\n"
    machines.strange = {"node1"}
    inventory = write_site(tmp_path, files={**_UNDISCOVERED, "hardware.yml": contract})
    with pytest.raises(DeployError, match="unknown-secret"):
        machines.run(inventory, never)
    assert machines.ran == ["discover", "plan"]
    assert not (tmp_path / "secrets.yml").exists()
