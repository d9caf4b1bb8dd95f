"""What containers need of the whole site."""

from pathlib import Path
from typing import Any

import pytest

from deploy.plan.build import build_plan
from deploy.plan.generated_inventory import generated_inventory
from deploy.site.inventory import read_site
from deploy.site.versions import catalogue, mirrored
from tests.unit.site.sites import INVENTORY, write_site

CONTAINERS = f"{INVENTORY}\n[slurm-container:children]\nslurm-node\n"
BEFORE_TASKS = "required spank_task_prolog.so /usr/local/lib/slurm-task-prolog"
LINE = "required spank_pyxis.so runtime_path=/run/pyxis container_scope=job"


def wired(place: Path, text: str = "", limit: set[str] | None = None) -> dict[str, Any]:
    site = read_site(write_site(place, CONTAINERS, {"group_vars/all.yml": text}))
    groups: dict[str, Any] = generated_inventory(site, build_plan(site, limit=limit), {})["all"]["children"]
    return groups


def test_the_plugin_goes_everywhere_and_enroot_to_its_group(tmp_path: Path) -> None:
    groups = wired(tmp_path)
    assert list(groups["phase_plugin_build"]["hosts"]) == ["ctl1"]
    assert list(groups["phase_plugin"]["hosts"]) == ["ctl1", "login1", "node1", "node2"]
    assert list(groups["phase_containers"]["hosts"]) == ["node1", "node2"]
    places = {
        groups[name]["vars"]["pyxis_exchange_directory"] for name in ("phase_plugin_build", "phase_plugin")
    }
    assert places == {str(tmp_path / ".deploy/packages")}


def test_a_site_without_the_group_has_none_of_it(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path))
    groups = generated_inventory(site, build_plan(site), {})["all"]["children"]
    assert [
        name for name in groups if "plugin" in name or "containers" in name if groups[name]["hosts"]
    ] == []
    assert "slurmctld_plugstack" not in groups["phase_check"]["hosts"]["ctl1"]


def test_slurm_itself_runs_nothing_before_a_task_that_is_in_its_container(tmp_path: Path) -> None:
    assert wired(tmp_path)["phase_controller"]["vars"]["slurmctld_task_prolog"] == ""
    site = read_site(write_site(tmp_path))
    groups = generated_inventory(site, build_plan(site), {})["all"]["children"]
    assert groups["phase_controller"]["vars"]["slurmctld_task_prolog"] == "/usr/local/lib/slurm-task-prolog"


def test_the_plugins_line_joins_those_of_the_site(tmp_path: Path) -> None:
    text = "slurmctld_plugstack: [optional other.so]\npyxis_options: {execute_entrypoint: true}\n"
    host = wired(tmp_path, text)["phase_check"]["hosts"]["ctl1"]
    assert host["slurmctld_plugstack"] == [
        "optional other.so",
        BEFORE_TASKS,
        f"{LINE} execute_entrypoint=true",
    ]
    assert host["slurmctld_plugstack_not_added"] == []


def test_a_limited_run_does_not_bring_it_into_force(tmp_path: Path) -> None:
    host = wired(tmp_path, limit={"node1"})["phase_check"]["hosts"]["ctl1"]
    assert host["slurmctld_plugstack_not_added"] == [BEFORE_TASKS, LINE]


def test_downloads_come_from_the_mirror(tmp_path: Path) -> None:
    hosts = wired(tmp_path, "bootstrap_mirror: https://mirror.site/pub/\n")["phase_check"]["hosts"]
    assert hosts["ctl1"]["pyxis_source"]["url"] == (
        "https://mirror.site/pub/github.com/NVIDIA/pyxis/archive/refs/tags/v0.24.0.tar.gz"
    )
    assert all(
        file["url"].startswith("https://mirror.site/pub/") for file in hosts["node1"]["enroot_package_files"]
    )
    assert "enroot_package_files" not in hosts["login1"]


def test_what_the_site_names_itself_stays(tmp_path: Path) -> None:
    text = "bootstrap_mirror: https://mirror.site\nenroot_package_files: []\n"
    assert "enroot_package_files" not in wired(tmp_path, text)["phase_check"]["hosts"]["node1"]


@pytest.mark.parametrize("value", [["https://a.b/c d https://e.f/g"], {"x": "text", "n": 1}])
def test_without_a_mirror_nothing_changes(value: object) -> None:
    assert mirrored(value, "") == value


def test_addresses_are_replaced_wherever_they_are() -> None:
    value = {"key": "deb [signed-by=x] https://a.b/c /", "list": ["ftp://d.e/f", 1, True]}
    assert mirrored(value, "http://m") == {
        "key": "deb [signed-by=x] http://m/a.b/c /",
        "list": ["http://m/d.e/f", 1, True],
    }


def _files(value: object) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        own = [value] if "url" in value else []
        return own + [file for inner in value.values() for file in _files(inner)]
    return [file for inner in value for file in _files(inner)] if isinstance(value, list) else []


def test_every_file_of_the_catalogue_has_a_checksum() -> None:
    files = _files(dict(catalogue()))
    assert files
    assert [file["url"] for file in files if len(file.get("sha256", "")) != 64] == []
