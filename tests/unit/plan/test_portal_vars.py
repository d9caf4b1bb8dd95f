"""What follows from the site for the portal: where it is, who reaches it, what servers may load."""

from pathlib import Path

import pytest

from deploy.plan.catalog import members
from deploy.plan.declarations import listening_names
from deploy.plan.generated_inventory import shared_variables, wired_variables
from deploy.plan.listening import jobs, listeners, members_of_phases
from deploy.site.inventory import Site, read_site
from tests.unit.site.sites import INVENTORY, write_site

TORCH = "{name: torch, version: '2.9', requirements: [torch==2.9.1]}"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    inventory = INVENTORY.replace("[slurm-node]", "[slurm-portal]\nlogin1\n\n[slurm-node]")
    files = {
        "group_vars/all.yml": f"ml_stack_environments: [{TORCH}]\nfirewall_admin_networks: [192.0.2.0/24]\n"
    }
    return read_site(write_site(tmp_path, inventory, files))


def test_the_hub_has_one_host_and_servers_are_on_nodes(site: Site) -> None:
    assert [host.name for host in members(site, {}, "portal")] == ["login1"]
    assert [host.name for host in members(site, {}, "jupyter_servers")] == ["node1", "node2"]


def test_it_knows_its_names_and_the_environments_of_nodes(site: Site) -> None:
    told = wired_variables(site, {}).by_host["login1"]
    assert told["slurm_portal_host"] == "login1"
    assert told["slurm_portal_address"] == "10.0.0.2"
    assert told["slurm_portal_validation_user"] == "deploy-validate"
    assert told["slurm_portal_environments"] == [
        {"name": "torch-2.9", "title": "torch/2.9", "modules": ["torch/2.9"]}
    ]
    assert not [
        name for name in wired_variables(site, {}).by_host["node1"] if name.startswith("slurm_portal")
    ]


def test_it_asks_prometheus_on_its_own_host_alone(site: Site, tmp_path: Path) -> None:
    assert "slurm_portal_prometheus_url" not in wired_variables(site, {}).by_host["login1"]
    inventory = INVENTORY.replace("[slurm-node]", "[slurm-portal]\nctl1\n\n[slurm-node]")

    def asked(text: str) -> object:
        place = tmp_path / str(len(text))
        place.mkdir()
        found = read_site(write_site(place, inventory, {"group_vars/all.yml": text}))
        return wired_variables(found, {}).by_host["ctl1"].get("slurm_portal_prometheus_url")

    assert asked("{}\n") == "http://127.0.0.1:9090"
    assert asked("firewall_admin_networks: [192.0.2.0/24]\n") == "http://10.0.0.1:9090"
    # What the site says stays; with accounts it asks for a password that the portal has not.
    assert asked("slurm_portal_prometheus_url: http://other:9090\n") is None
    assert asked("prometheus_web: {basic_auth_users: {a: b}}\n") is None


def test_its_host_says_what_projects_may_use(tmp_path: Path) -> None:
    inventory = INVENTORY.replace("[slurm-node]", "[slurm-portal]\nctl1\n\n[slurm-node]")
    budget = "slurm_accounts_accounts: [{name: laser, budget: {hours: gres/gpu=100}}]\n"
    site = read_site(write_site(tmp_path, inventory, {"group_vars/all.yml": budget}))
    assert {host.name for host in members(site, {}, "show_budget")} == {"login1", "ctl1"}


def test_users_reach_its_page_and_prometheus_alone_its_numbers(site: Site) -> None:
    told = wired_variables(site, {}).by_host
    assert told["login1"]["firewall_user_pages"] == ["443"]
    assert told["ctl1"]["firewall_user_pages"] == []
    guarded = told["login1"]["firewall_guarded"][0]["ports"]
    assert "9108" in guarded
    assert not {"443", "444"} & {*guarded}
    assert told["login1"]["slurm_portal_metrics_listen_address"] == "10.0.0.2"
    assert jobs()["portal"] == ("portal", "slurm_portal_metrics")
    targets = shared_variables(site, {})["phase_targets"]["scrape_targets_jobs"]["portal"]
    assert [target["targets"] for target in targets] == [["10.0.0.2:9108"]]
    probed = shared_variables(site, {})["phase_targets"]["scrape_targets_jobs"]["blackbox"]
    (probe,) = [target for target in probed if target["labels"]["service"] == "portal"]
    assert probe["targets"] == ["https://10.0.0.2:443/hub/health"]
    assert probe["labels"]["instance"] == "login1"


def test_each_of_its_ports_is_known(site: Site) -> None:
    names = ("slurm_portal", "slurm_portal_hub", "slurm_portal_metrics")
    assert listening_names("slurm_portal") == names
    assert {*names} <= {*listeners(members_of_phases(site, {}))["login1"]}


def test_a_site_without_a_portal_has_nothing_of_it(tmp_path: Path) -> None:
    plain = read_site(write_site(tmp_path))
    assert members(plain, {}, "portal") == members(plain, {}, "jupyter_servers") == ()
    assert "portal" not in shared_variables(plain, {})["phase_targets"]["scrape_targets_jobs"]
    assert plain.group("slurm-portal") == ()
