import json
from pathlib import Path

import pytest

from deploy.plan.upgrade_groups import GROUPS, write_step
from deploy.site.inventory import read_site
from tests.contract.content import ROOT, read_yaml
from tests.unit.site.sites import INVENTORY, write_site


def test_a_step_has_its_hosts_in_one_play_alone(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path))
    by_host = {name: {"slurm_packages_kept": "24.11"} for name in site.hosts}
    path = tmp_path / "step.json"
    write_step(
        path, site, {}, "hosts", ["node2"], by_host=by_host, variables={"slurm_backup_directory": "/b"}
    )
    groups = json.loads(path.read_text())["all"]["children"]
    filled = {name: [*groups[f"upgrade_{name}"]["hosts"]] for name in GROUPS}
    assert {name: hosts for name, hosts in filled.items() if hosts} == {"hosts": ["node2"]}
    assert groups["upgrade_hosts"]["vars"]["slurm_backup_directory"] == "/b"
    # What its roles read is there, as for every other run.
    assert groups["phase_check"]["hosts"]["node2"]["slurm_packages_kept"] == "24.11"
    assert groups["phase_check"]["hosts"]["node2"]["slurm_packages_components"] == ["slurmd", "slurm-client"]


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ("", {"upgrade_has_plugin": False, "slurm_stage_goes_back": False}),
        (
            "[slurm-container]\nnode1\nnode2\n[slurm-cluster:vars]\nslurm_packages_version=26.05\n",
            {
                "upgrade_has_plugin": True,
                "slurm_stage_goes_back": False,
                "slurm_stage_replaced": ["slurm-pyxis"],
                "pyxis_staged": "/var/lib/deploy/slurm-upgrade",
                "pyxis_wanted": "26.05",
            },
        ),
    ],
)
def test_the_plugin_for_containers_goes_along(
    tmp_path: Path, groups: str, expected: dict[str, object]
) -> None:
    site = read_site(write_site(tmp_path, INVENTORY + groups))
    write_step(tmp_path / "step.json", site, {}, "hosts", ["node2"], by_host={}, variables={})
    told = json.loads((tmp_path / "step.json").read_text())["all"]["children"]["upgrade_hosts"]["vars"]
    assert {key: said for key, said in told.items() if key != "slurm_stage_directory"} == expected


def test_every_group_is_a_play_and_the_other_way_round() -> None:
    plays = [play["hosts"] for play in read_yaml(ROOT / "playbooks/upgrade.yml")]
    assert plays == [f"upgrade_{name}" for name in GROUPS]
