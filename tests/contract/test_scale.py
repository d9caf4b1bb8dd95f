"""docs/scale.md: what a node that converges itself needs of the site's secrets."""

import json
import re
from pathlib import Path

from deploy.plan.build import build_plan
from deploy.plan.generated_inventory import generated_inventory
from deploy.site.inventory import read_site
from deploy.site.secrets import OF_MEMBERS, secret_names
from tests.contract.content import ROOT
from tests.unit.site.sites import INVENTORY, write_site

_GROUPS = """\
[slurm-cache]
login1
[slurm-log]
ctl1
[slurm-nfs]
ctl1
[slurm-nfs-client]
node1
[slurm-container]
node1
[slurm-registry]
login1
[slurm-portal]
login1
[slurm-rest]
login1
[rdma]
node1
"""
_READ = ("tasks", "templates", "vars", "handlers")


def _secrets_of_a_node(place: Path) -> set[str]:
    """Those that its phases mention: their roles, and the variables that follow from the site."""
    files = {"group_vars/all.yml": "slurm_auth_type: auth/slurm\n"}
    site = read_site(write_site(place, _GROUPS + INVENTORY, files))
    plan = build_plan(site)
    groups = generated_inventory(site, plan, {})["all"]["children"]
    text = ""
    for phase in (step.phase for step in plan.steps):
        if "node1" in groups.get(phase.group, {}).get("hosts", {}):
            text += json.dumps(groups[phase.group])
            for role in phase.roles:
                for path in (ROOT / "roles" / role).glob("*/**/*"):
                    if path.is_file() and path.relative_to(ROOT).parts[2] in _READ:
                        text += path.read_text(encoding="utf-8")
    return {name for name in (*secret_names(), OF_MEMBERS) if re.search(rf"\b{name}\b", text)}


def test_the_page_names_what_a_compute_node_reads(tmp_path: Path) -> None:
    found = _secrets_of_a_node(tmp_path)
    assert "munge_key" in found
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    passage = page.partition("/etc/converge-here/secrets.yml`")[2].partition("\n\nThe node reports")[0]
    assert found == {*re.findall(r"`(\w+)(?:: \"\")?`", passage)} & {*secret_names(), OF_MEMBERS}
