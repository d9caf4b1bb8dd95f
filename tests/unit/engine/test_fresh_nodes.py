"""Nodes on which nothing is yet are checked before a run, and not previewed."""

import json
from pathlib import Path

import pytest

from deploy.engine.options import Options
from deploy.errors import DeployError
from tests.unit.engine.machines import Machines, machines
from tests.unit.engine.test_first_run import never
from tests.unit.site.sites import write_site

__all__ = ["machines"]

_NOTHING = {"records": {}, "left": [], "pending": {}, "hosts": {}, "slurm": ""}


@pytest.fixture
def inventory(machines: Machines, tmp_path: Path) -> Path:
    """A settled site."""
    made = write_site(tmp_path)
    machines.settle(made)
    return made


def test_a_fresh_node_is_only_checked(machines: Machines, inventory: Path) -> None:
    machines.said["node2"] = _NOTHING
    machines.run(inventory, never)
    assert machines.ran == ["plan", "cluster"]
    assert [preview.fresh for preview in machines.previewed] == [{"node2"}]
    looked_at = json.loads((inventory.parent / "place/settled.json").read_text())["all"]["children"]
    assert [name for name, group in looked_at.items() if "node2" in group["hosts"]] == ["phase_check"]
    done = json.loads((inventory.parent / "place/generated.json").read_text())["all"]["children"]
    assert {"phase_base", "phase_compute", "phase_check"} <= {
        name for name, group in done.items() if "node2" in group["hosts"]
    }


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("node2", {"slurm": "24.11.5"}),
        ("node2", {"pending": {"base": ["x"]}}),
        ("login1", {}),
    ],
)
def test_what_may_have_something_to_lose_is_previewed(
    machines: Machines, inventory: Path, name: str, said: dict[str, object]
) -> None:
    """Slurm that is there, an interrupted run, a host where people are."""
    machines.said[name] = {**_NOTHING, **said}
    machines.run(inventory, never)
    assert [preview.fresh for preview in machines.previewed] == [frozenset()]
    assert not (inventory.parent / "place/settled.json").exists()


def test_no_host_joins_a_controller_without_slurm(machines: Machines, inventory: Path) -> None:
    machines.said["ctl1"] = machines.said["node2"] = _NOTHING
    with pytest.raises(DeployError, match="there is no Slurm on ctl1") as told:
        machines.run(inventory, never, Options(limit="node2"))
    (finding,) = told.value.findings
    assert finding.hint.endswith("--limit ctl1,node2")
    assert machines.ran == []


@pytest.mark.parametrize("limit", ["ctl1", "ctl1,node2"])
def test_the_controller_may_come_first(machines: Machines, inventory: Path, limit: str) -> None:
    machines.said["ctl1"] = machines.said["node2"] = _NOTHING
    machines.run(inventory, never, Options(limit=limit))
    assert machines.ran[-1] == "cluster"
