"""Nodes on which nothing is yet are checked before a run, and not previewed."""

import json
from pathlib import Path

import pytest

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
