import json
from pathlib import Path

from deploy.plan.upgrade_groups import GROUPS, write_step
from deploy.site.inventory import read_site
from tests.contract.content import ROOT, read_yaml
from tests.unit.site.sites import write_site


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


def test_every_group_is_a_play_and_the_other_way_round() -> None:
    plays = [play["hosts"] for play in read_yaml(ROOT / "playbooks/upgrade.yml")]
    assert plays == [f"upgrade_{name}" for name in GROUPS]
