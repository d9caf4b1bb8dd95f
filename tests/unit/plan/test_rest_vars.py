"""The REST API: who has it, who gets the key of tokens, and who may come."""

from pathlib import Path
from typing import Any

from deploy.plan.build import build_plan
from deploy.plan.generated_inventory import generated_inventory
from deploy.site.inventory import read_site
from tests.unit.site.sites import INVENTORY, write_site

REST = f"{INVENTORY}\n[slurm-rest]\nlogin1\n"
KEY = "{{ '/etc/slurm/jwt_hs256.key' if slurm_tokens_key | default(true) else '' }}"


def wired(place: Path, inventory: str = REST, text: str = "") -> dict[str, Any]:
    site = read_site(write_site(place, inventory, {"group_vars/all.yml": text}))
    groups: dict[str, Any] = generated_inventory(site, build_plan(site), {})["all"]["children"]
    return groups


def test_it_is_where_the_group_says_and_only_the_daemons_have_the_key(tmp_path: Path) -> None:
    groups = wired(tmp_path)
    assert list(groups["phase_rest"]["hosts"]) == ["login1"]
    assert list(groups["phase_tokens"]["hosts"]) == ["ctl1"]
    assert groups["phase_controller"]["vars"]["slurmctld_tokens_key_file"] == KEY
    assert groups["phase_accounting"]["vars"]["slurmdbd_tokens_key_file"] == KEY
    changes = "{{ ansible_check_mode and __slurm_tokens_placed | default({}) is changed }}"
    assert groups["phase_controller"]["vars"]["slurmctld_tokens_key_changes"] == changes
    assert groups["phase_accounting"]["vars"]["slurmdbd_tokens_key_changes"] == changes
    login = groups["phase_check"]["hosts"]["login1"]
    assert login["slurm_rest_names"] == ["10.0.0.2", "login1"]
    assert login["slurm_packages_components"] == ["sackd", "slurmrestd", "slurm-client"]


def test_without_it_nobody_takes_tokens(tmp_path: Path) -> None:
    groups = wired(tmp_path, INVENTORY)
    assert (groups["phase_rest"]["hosts"], groups["phase_tokens"]["hosts"]) == ({}, {})
    assert groups["phase_controller"]["vars"]["slurmctld_tokens_key_file"] == ""
    assert groups["phase_accounting"]["vars"]["slurmdbd_tokens_key_file"] == ""


def test_users_come_from_outside_where_the_site_says_so(tmp_path: Path) -> None:
    for said, ports in (("", []), ("slurm_rest_from_outside: true\n", ["6820"])):
        place = tmp_path / ((said and "outside") or "inside")
        place.mkdir()
        hosts = wired(place, text=said)["phase_check"]["hosts"]
        assert hosts["login1"]["firewall_user_pages"] == ports
        assert hosts["ctl1"]["firewall_user_pages"] == []


def test_what_watches_asks_it_through_the_proxy(tmp_path: Path) -> None:
    asked = wired(tmp_path)["phase_targets"]["vars"]["scrape_targets_jobs"]["blackbox"]
    assert [one["targets"] for one in asked if one["labels"]["service"] == "rest"] == [
        ["https://10.0.0.2:6820/health"]
    ]
