import subprocess
import sys
from pathlib import Path

import pytest

from deploy.errors import DeployError
from deploy.run.ssh import Login, command
from deploy.site.checks import check_site
from deploy.site.inventory import read_site
from tests.unit.site.sites import INVENTORY, write_site

YAML_INVENTORY = """\
all:
  children:
    slurm-master: {hosts: {ctl1: {ansible_host: 10.0.0.1}}}
    slurm-node: {hosts: {"node[1:2]": {}}}
    slurm-cluster: {children: {slurm-master: {}, slurm-node: {}}}
"""


def test_ini(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path))
    assert [host.name for host in site.nodes] == ["node1", "node2"]
    assert [host.name for host in site.cluster] == ["ctl1", "login1", "node1", "node2"]
    assert site.hosts["node1"].address == "10.0.0.11"
    assert site.hosts["node1"].variables["slurmd_hardware"]["cpus"] == 4
    assert site.hosts["node1"].groups == {"slurm-node", "slurm-cluster"}
    assert site.directory == tmp_path


def test_yaml(tmp_path: Path) -> None:
    path = tmp_path / "hosts.yml"
    path.write_text(YAML_INVENTORY)
    assert [host.name for host in read_site(path).nodes] == ["node1", "node2"]


def test_login_defaults_to_the_master(tmp_path: Path) -> None:
    text = INVENTORY.replace("[slurm-login]\nlogin1\n", "").replace("login1 ansible_host=10.0.0.2\n", "")
    text = text.replace("slurm-login\n", "")
    site = read_site(write_site(tmp_path, text))
    assert [host.name for host in site.logins] == ["ctl1"]


@pytest.mark.parametrize("hosts", ["controllers", "nodes", "logins", "metrics", "containers", "cluster"])
def test_the_hosts_of_a_site_are_put_together_once(tmp_path: Path, hosts: str) -> None:
    """Many ask for them once a host: what a host costs must not grow with their number."""
    groups = "[slurm-metric]\nctl1\n[slurm-container]\nnode1\n"
    site = read_site(write_site(tmp_path, INVENTORY + groups))
    assert getattr(site, hosts)
    assert getattr(site, hosts) is getattr(site, hosts)


def test_limit(tmp_path: Path) -> None:
    assert list(read_site(write_site(tmp_path), limit="node2").hosts) == ["node2"]


@pytest.mark.parametrize(
    ("text", "limit", "reference"),
    [
        (None, None, "inventory-not-found"),
        ("# A title\n\nSome text. And: more = text.\n", None, "inventory-invalid"),
        ("", None, "inventory-invalid"),
        ("[all\nnode1\n", None, "inventory-invalid"),
        (INVENTORY, "nowhere", "limit-matches-nothing"),
    ],
)
def test_what_is_not_an_inventory(
    tmp_path: Path, text: str | None, limit: str | None, reference: str
) -> None:
    path = tmp_path / "inventory.ini" if text is None else write_site(tmp_path, text)
    with pytest.raises(DeployError) as problem:
        read_site(path, limit=limit)
    assert [finding.reference for finding in problem.value.findings] == [reference]
    assert problem.value.exit_code == 2


def test_group_vars_of_the_current_directory_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site").mkdir()
    path = write_site(tmp_path / "site")
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "all.yml").write_text("stray: 1\n")
    monkeypatch.chdir(tmp_path)
    assert "stray" not in read_site(path).hosts["node1"].variables


def test_encrypted_variables(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("correct horse")
    vault = [str(Path(sys.executable).parent / "ansible-vault")]
    given = ["--vault-password-file", str(password)]
    value = subprocess.run(
        [*vault, "encrypt_string", *given, "--name", "munge_key", "k3Y_" * 12],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    files = {"group_vars/all.yml": value, "group_vars/slurm-master.yml": "slurmctld_cluster_name: hidden\n"}
    path = write_site(tmp_path, files=files)
    subprocess.run([*vault, "encrypt", *given, str(tmp_path / "group_vars/slurm-master.yml")], check=True)
    site = read_site(path, vault_password_file=password)
    assert site.hosts["ctl1"].variables["slurmctld_cluster_name"] == "hidden"
    assert "k3Y" not in str(site.hosts["ctl1"].variables["munge_key"])
    check_site(site, password)
    with pytest.raises(DeployError) as problem:
        read_site(path)
    assert problem.value.findings[0].reference == "inventory-invalid"
    assert "vault" in str(problem.value)


def test_of_extra_variables_only_those_on_the_connection_say_how_a_host_is_reached(tmp_path: Path) -> None:
    """A list or a mapping there would keep plain ssh, and with it the records and the lock, from the run."""
    extra = {"ansible_port": 2222, "slurmctld_parameters": {"SelectTypeParameters": "CR_Core"}}
    host = read_site(write_site(tmp_path), extra_variables=extra).controller
    assert host.variables["slurmctld_parameters"] == extra["slurmctld_parameters"]
    assert host.connection["ansible_port"] == 2222
    assert "slurmctld_parameters" not in host.connection
    assert command(host, Login())
