"""Which hosts have what users work with, and what of the whole site their roles know."""

from pathlib import Path
from typing import Any

from deploy.plan.build import build_plan
from deploy.plan.generated_inventory import generated_inventory
from deploy.plan.software_vars import BUILD_TOOLS, RUN_TIME
from deploy.site.inventory import read_site
from deploy.site.versions import catalogue
from tests.unit.site.sites import INVENTORY, write_site

TREE = "software_tree_directory: /software\nsoftware_tree_owner: builder\n"
TWO_LOGINS = INVENTORY.replace("login1\n", "login1\nlogin2 ansible_host=10.0.0.32\n", 1)


def groups_of(place: Path, inventory: str = INVENTORY, **files: str) -> dict[str, Any]:
    place.mkdir(exist_ok=True)
    named = {f"group_vars/{name.replace('_', '-')}.yml": text for name, text in files.items()}
    site = read_site(write_site(place, inventory, named))
    groups: dict[str, Any] = generated_inventory(site, build_plan(site), {})["all"]["children"]
    return groups


def test_the_first_login_node_makes_the_tree_and_all_hosts_find_its_modules(tmp_path: Path) -> None:
    groups = groups_of(tmp_path, all=TREE)
    assert [*groups["phase_software_tree"]["hosts"]] == ["login1"]
    hosts = groups["phase_check"]["hosts"]
    assert hosts["login1"]["software_tree_makes"] is True
    assert hosts["node1"]["environment_modules_trees"] == ["/software/easybuild/modules/all"]
    archives = hosts["login1"]["software_tree_easybuild_archives"]
    assert archives == catalogue()["software_tree_easybuild_archives"]


def test_spack_has_a_tree_of_its_own_and_easybuild_can_be_left_out(tmp_path: Path) -> None:
    text = f"{TREE}software_tree_spack_version: '1.0.2'\nsoftware_tree_easybuild_version: ''\n"
    hosts = groups_of(tmp_path, all=text)["phase_check"]["hosts"]
    assert hosts["node1"]["environment_modules_trees"] == ["/software/spack/modules"]


def test_without_a_tree_nothing_is_searched_beside_what_the_site_says(tmp_path: Path) -> None:
    groups = groups_of(tmp_path, all="")
    assert groups["phase_software_tree"]["hosts"] == {}
    assert groups["phase_check"]["hosts"]["node1"]["environment_modules_trees"] == []


def test_compilers_are_for_login_nodes_and_what_they_link_for_nodes(tmp_path: Path) -> None:
    hosts = groups_of(tmp_path, all="user_environment_build_tools: true\n")["phase_check"]["hosts"]
    assert hosts["login1"]["user_environment_build_packages"] == [*BUILD_TOOLS]
    assert hosts["node1"]["user_environment_build_packages"] == [*RUN_TIME]
    assert "user_environment_build_packages" not in hosts["ctl1"]


def test_shared_directories_are_made_where_the_storage_is(tmp_path: Path) -> None:
    text = "shared_directories_paths: [{path: /data}]\n"
    assert [*groups_of(tmp_path / "a", all=text)["phase_shared_directories"]["hosts"]] == ["login1"]
    served = INVENTORY.replace("[slurm-cluster:children]", "[slurm-nfs]\nctl1\n\n[slurm-cluster:children]")
    assert [*groups_of(tmp_path / "b", served, all=text)["phase_shared_directories"]["hosts"]] == ["ctl1"]


def test_conda_is_where_users_work(tmp_path: Path) -> None:
    groups = groups_of(tmp_path, all="conda_version: '2.3.2'\n")
    assert [*groups["phase_conda"]["hosts"]] == ["login1", "node1", "node2"]
