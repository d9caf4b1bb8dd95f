"""Projects: which hosts take part once accounts have budgets or groups, and what they are told."""

from pathlib import Path
from typing import Any

import pytest

from deploy.plan.build import build_plan
from deploy.plan.catalog import prerequisites
from deploy.plan.generated_inventory import generated_inventory
from deploy.site.inventory import read_site
from tests.unit.site.sites import write_site

BUDGET = """\
slurm_accounts_accounts:
  - {name: research}
  - {name: ice, members: [alice], managers: [carol], budget: {hours: gres/gpu=5}}
slurmctld_state_save_location: /shared/state
"""
GROUPS = """\
slurm_accounts_accounts: [{name: ice, members: [alice], managers: [carol], groups: [icy]}]
slurm_accounts_users: [{name: bob, accounts: [ice]}]
"""


def groups_of(place: Path, text: str) -> dict[str, Any]:
    site = read_site(write_site(place, files={"group_vars/all.yml": text}))
    found: dict[str, Any] = generated_inventory(site, build_plan(site), {})["all"]["children"]
    return found


def hosts(groups: dict[str, Any], phase: str) -> list[str]:
    return [*groups.get(f"phase_{phase}", {"hosts": {}})["hosts"]]


def test_budgets_are_kept_on_controllers_and_shown_on_login_nodes(tmp_path: Path) -> None:
    groups = groups_of(tmp_path, BUDGET)
    assert hosts(groups, "budgets") == ["ctl1"]
    assert hosts(groups, "show_budget") == ["login1"]
    assert hosts(groups, "account_groups") == []
    assert groups["phase_budgets"]["vars"] == {"slurm_budgets_directory": "/shared/state"}


def test_groups_are_looked_at_where_the_database_is(tmp_path: Path) -> None:
    groups = groups_of(tmp_path, GROUPS)
    assert hosts(groups, "account_groups") == ["ctl1"]
    assert hosts(groups, "budgets") == []
    told = groups["phase_account_groups"]["vars"]
    assert told["slurm_groups_accounts"] == [
        {"name": "ice", "groups": ["icy"], "members": ["alice", "bob", "carol"]}
    ]
    assert told["slurm_groups_conf_servers"] == ["ctl1"]


@pytest.mark.parametrize("text", ["", "slurm_accounts_accounts: [{name: ice, members: [alice]}]\n"])
def test_a_site_without_either_has_nothing_of_them(tmp_path: Path, text: str) -> None:
    groups = groups_of(tmp_path, text)
    assert [hosts(groups, phase) for phase in ("budgets", "show_budget", "account_groups")] == [[], [], []]


def test_the_database_has_the_accounts_before() -> None:
    for phase in ("budgets", "account_groups"):
        assert "associations" in prerequisites(phase)
    assert "directory" in prerequisites("account_groups")
