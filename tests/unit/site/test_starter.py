from pathlib import Path

import pytest
import yaml

from deploy.errors import DeployError
from deploy.site.inventory import read_site
from deploy.site.schema import options
from deploy.site.starter import Machines, starter_files, starter_inventory, starter_variables

COMPUTED = {"hosts_file_entries", "slurmctld_nodes", "slurmd_conf_servers", "slurm_packages_components"}
SECRETS = {"grafana_admin_password", "munge_key", "slurmdbd_database_password"}


def test_the_inventory_names_the_machines_in_their_groups(tmp_path: Path) -> None:
    path = tmp_path / "inventory.ini"
    path.write_text(starter_inventory(Machines("ctl1", ("node1", "node2"), ("login1",)), user="admin"))
    site = read_site(path)
    assert [host.name for host in site.controllers] == ["ctl1"]
    assert [host.name for host in site.nodes] == ["node1", "node2"]
    assert [host.name for host in site.logins] == ["login1"]
    assert {host.variables["ansible_user"] for host in site.cluster} == {"admin"}
    assert set(site.groups["slurm-cluster"]) == {"ctl1", "node1", "node2", "login1"}


def test_an_inventory_still_to_be_filled_in_says_so(tmp_path: Path) -> None:
    path = tmp_path / "inventory.ini"
    path.write_text(starter_inventory(Machines()))
    with pytest.raises(DeployError) as caught:
        read_site(path)
    (finding,) = caught.value.findings
    assert finding.reference == "inventory-invalid"
    assert "names no host" in finding.message
    assert "[slurm-master]" in finding.hint


def test_an_example_line_uncommented_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "inventory.ini"
    text = starter_inventory(Machines())
    path.write_text("\n".join(line[2:] if "ansible_host=1" in line else line for line in text.splitlines()))
    site = read_site(path)
    assert {host.name: host.address for host in site.cluster} == {
        "ctl1": "10.0.0.1",
        "node1": "10.0.0.11",
        "node2": "10.0.0.12",
        "login1": "10.0.0.2",
    }


def test_new_variables_change_nothing() -> None:
    assert yaml.safe_load(starter_variables()) is None


def test_every_variable_that_an_admin_may_set_is_there() -> None:
    lines = starter_variables().splitlines()
    shown = {name for name in options() if any(line.startswith(f"#{name}:") for line in lines)}
    assert {"slurmctld_partitions", "users_accounts", "hosts_file_address"} <= shown
    assert not shown & (COMPUTED | SECRETS)
    left_out = options().keys() - shown
    assert left_out >= COMPUTED | SECRETS
    assert len(left_out) < len(shown) / 2


def test_keys_of_elements_are_explained() -> None:
    text = starter_variables()
    assert "# - name (str, required): PartitionName.\n" in text
    assert "# - gpus[].type (str, required): Type as users name it" in text
    assert "#slurmctld_partitions:\n#  - name: batch\n#    default: true\n" in text


def test_the_first_line_tells_an_editor_the_schema() -> None:
    files = starter_files(Machines())
    first = files["group_vars/all.yml"].splitlines()[0]
    assert first == "# yaml-language-server: $schema=../group_vars.schema.json"
    assert "group_vars.schema.json" in files


def test_git_ignores_secrets_the_journal_and_backups() -> None:
    assert {"secrets.yml", ".deploy/", "backups/"} <= set(
        starter_files(Machines())[".gitignore"].splitlines()
    )
