"""Energy accounting: which hosts get what it measures by."""

from pathlib import Path
from typing import Any

import pytest

from deploy.plan.build import build_plan
from deploy.plan.generated_inventory import generated_inventory
from deploy.site.inventory import read_site
from tests.unit.site.sites import write_site


def wired(place: Path, text: str) -> dict[str, Any]:
    site = read_site(write_site(place, files={"group_vars/all.yml": text}))
    groups: dict[str, Any] = generated_inventory(site, build_plan(site), {})["all"]["children"]
    return groups


def test_controllers_and_nodes_load_plugins_and_only_nodes_are_measured(tmp_path: Path) -> None:
    groups = wired(tmp_path, "slurmctld_energy_sources: [ipmi]\n")
    assert [*groups["phase_energy"]["hosts"]] == ["ctl1", "node1", "node2"]
    hosts = groups["phase_check"]["hosts"]
    assert {name: hosts[name]["slurm_energy_measures"] for name in ("ctl1", "node1")} == {
        "ctl1": False,
        "node1": True,
    }
    assert hosts["ctl1"]["slurm_energy_sources"] == hosts["node1"]["slurm_energy_sources"] == ["ipmi"]
    assert "slurm_energy_sources" not in hosts["login1"]


def test_a_site_that_says_nothing_has_none_of_it(tmp_path: Path) -> None:
    assert wired(tmp_path, "")["phase_energy"]["hosts"] == {}


@pytest.mark.parametrize("text", ["slurmctld_energy_sources: []\n"])
def test_who_says_none_has_what_was_there_taken_away(tmp_path: Path, text: str) -> None:
    assert [*wired(tmp_path, text)["phase_energy"]["hosts"]] == ["ctl1", "node1", "node2"]
