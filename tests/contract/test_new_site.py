"""A new site offers what an admin may set, and not what deploy sets over it."""

from pathlib import Path

from deploy.plan.build import build_plan
from deploy.plan.generated_inventory import generated_inventory
from deploy.site.inventory import read_site
from deploy.site.schema import options
from deploy.site.starter import starter_variables
from deploy.site.wording import is_computed
from tests.unit.site.sites import write_site


def test_what_deploy_always_sets_is_described_so_and_not_offered(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path))
    groups = generated_inventory(site, build_plan(site), {})["all"]["children"].values()
    always = {name for group in groups for name in group["vars"] if name in options()}
    assert "slurmctld_nodes" in always
    assert {name for name in always if not is_computed(options()[name].spec)} == set()
    offered = {line[1:].partition(":")[0] for line in starter_variables().splitlines() if line[:1] == "#"}
    assert always & offered == set()
