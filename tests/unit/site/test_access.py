"""Who reaches what, where the inventory has names alone."""

import re
from pathlib import Path

import pytest

from deploy.errors import DeployError
from deploy.site.checks import check_site
from deploy.site.inventory import read_site
from tests.unit.site.sites import INVENTORY, write_site

_NAMES = re.sub(" ansible_host=.*", "", INVENTORY).replace(
    "[slurm-cluster:children]", "[slurm-log]\nlogin1\n\n[slurm-cluster:children]"
)
_WALL = "firewall_admin_networks: [192.0.2.0/24]\nfirewall_cluster_networks: [10.0.0.0/24]\n"


def test_a_service_of_a_site_of_names_is_for_nobody_else_with_a_firewall(tmp_path: Path) -> None:
    check_site(read_site(write_site(tmp_path, _NAMES, {"group_vars/all.yml": _WALL})), None)
    with pytest.raises(DeployError, match="log_server_senders would be empty"):
        check_site(read_site(write_site(tmp_path, _NAMES, {"group_vars/all.yml": ""})), None)
