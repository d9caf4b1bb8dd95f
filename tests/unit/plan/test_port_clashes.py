from pathlib import Path

import pytest

from deploy.plan.port_clashes import port_clashes
from deploy.site.inventory import read_site
from tests.unit.site.sites import INVENTORY, write_site

ALL = "group_vars/all.yml"
WATCHED = INVENTORY.replace("[slurm-master]", "[slurm-metric]\nctl1\n\n[slurm-master]")


def clashes(directory: Path, text: str, inventory: str = WATCHED) -> list[str]:
    site = read_site(write_site(directory, inventory, {ALL: text}))
    return [
        str(finding).partition("\n")[0].split(str(directory) + "/")[-1] for finding in port_clashes(site, {})
    ]


def test_as_it_is_every_daemon_has_its_own_port(tmp_path: Path) -> None:
    assert clashes(tmp_path, "") == []


@pytest.mark.parametrize(
    ("text", "both", "where"),
    [
        ("alertmanager_port: 9090\n", "prometheus-alertmanager and prometheus", "9090 of ctl1"),
        ("slurmdbd_port: 3306\n", "mariadbd and slurmdbd", "3306 of ctl1"),
        ("slurmctld_parameters: {SlurmctldPort: 6819}\n", "slurmctld and slurmdbd", "6819 of ctl1"),
        ("slurmctld_parameters: {SlurmctldPort: 6817-6819}\n", "slurmctld and slurmdbd", "6819 of ctl1"),
        ("mariadb_parameters: {port: 6817}\n", "slurmctld and mariadbd", "6817 of ctl1"),
        ("node_exporter_port: 22\n", "sshd and prometheus-node-exporter", "22 of ctl1,login1,node[1-2]"),
        ("node_exporter_port: 6818\n", "slurmd and prometheus-node-exporter", "6818 of node[1-2]"),
    ],
)
def test_two_daemons_on_one_port_are_named_with_the_line(
    tmp_path: Path, text: str, both: str, where: str
) -> None:
    expected = f"{ALL}:1: {both} would both listen on port {where} [port-taken-twice]"
    assert clashes(tmp_path, text) == [expected]


def test_sshd_where_the_inventory_says(tmp_path: Path) -> None:
    moved = WATCHED.replace("node1 ansible_host", "node1 ansible_port=9100 ansible_host")
    (said,) = clashes(tmp_path, "", moved)
    assert "sshd and prometheus-node-exporter would both listen on port 9100 of node1" in said
    assert said.startswith("inventory.ini:4: ")
