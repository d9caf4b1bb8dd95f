import importlib
import re
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import ansible
import pytest
import yaml

from deploy.errors import DeployError
from deploy.judge.last_drill import REPORTS
from deploy.run.settings import ansible_environment
from deploy.run.ssh import Login, command
from deploy.site import own_files, user_commands
from deploy.site.ansible_settings import KEPT, reading_environment
from deploy.site.checks import check_site
from deploy.site.hardware import keep
from deploy.site.inventory import read_site
from deploy.site.listing_process import listing_environment
from deploy.site.secrets import fill_secrets
from deploy.site.starter import SCHEMA
from deploy.validate import thresholds
from tests.tracked import ROOT
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


def test_what_deploy_keeps_beside_is_no_inventory(tmp_path: Path) -> None:
    """Also where the inventory is a directory, every file of which Ansible reads."""
    (tmp_path / "site").mkdir()
    inventory = write_site(tmp_path / "site").parent
    first = read_site(inventory)
    fill_secrets(first, None)
    keep(first, {"node1": {"cpus": 4, "memory_mb": 8000}})
    (inventory / own_files.THRESHOLDS).write_text("reach:\n  seconds: 3\n")
    (inventory / own_files.SCHEMA).write_text('{"properties": {"a": {}}}')
    (inventory / own_files.BACKUPS).mkdir()
    (inventory / own_files.BACKUPS / "hosts").write_text("stray\n")
    (inventory / REPORTS).mkdir()
    (inventory / REPORTS / "drill-20261126T140326Z.json").write_text('{"lab": {"hosts": {"a": {}}}}')
    (inventory / user_commands.FILE_NAME).write_text("guide: x\ncommands: []\n")
    (inventory / "files").mkdir()
    (inventory / "files" / "scratch.sh").write_text("#!/bin/sh\nmkdir -p /scratch\n")
    (inventory / "job_submit.lua").write_text("function slurm_job_submit(job, parts, uid)\nend\n")
    (inventory / "backup.key").write_text("# public key: age1x\nAGE-SECRET-KEY-1X\n")
    assert _kept_beside() <= {path.name for path in inventory.iterdir()}
    again = read_site(inventory)
    assert (again.hosts.keys(), again.groups, again.warnings) == (first.hosts.keys(), first.groups, ())
    assert [finding for finding in check_site(again, None) if finding.where != "node2"] == []
    environment = reading_environment({})
    for said in (environment, ansible_environment(base={})):
        assert said["ANSIBLE_INVENTORY_IGNORE_REGEX"] == environment["ANSIBLE_INVENTORY_IGNORE_REGEX"]


def _kept_beside() -> set[str]:
    """What modules of deploy call files and directories beside an inventory."""
    names = {SCHEMA, thresholds.FILE_NAME}
    for path in (ROOT / "deploy").rglob("*.py"):
        words = re.findall(r"\bsite\.directory / ((?:\w+\.)?[A-Z_]+)\b", path.read_text(encoding="utf-8"))
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        names |= {attrgetter(word)(importlib.import_module(module)) for word in words}
    return names


@pytest.mark.parametrize("name", ["files.d/tool", "programs/tool", "tool.sh"])
def test_what_is_no_inventory_in_a_directory_of_them_is_named(tmp_path: Path, name: str) -> None:
    """Ansible says what it stumbled over; another file may have the same word."""
    inventory = tmp_path / "site"
    inventory.mkdir()
    write_site(inventory)
    (inventory / name).parent.mkdir(exist_ok=True)
    (inventory / name).write_text("#!/bin/sh\necho ctl1 ansible_host\n")
    with pytest.raises(DeployError) as raised:
        read_site(inventory)
    (finding,) = raised.value.findings
    assert finding.where.partition(":")[0] == str(inventory / name)
    assert "files/" in finding.hint


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("files", "spare1\n"),
        ("drills", "spare1\n"),
        ("files/a/more.ini", "[slurm-login]\nspare1\n"),
        ("files/more", "spare1 ansible_host=10.0.0.9\n"),
        ("files/more.yml", "all:\n  hosts:\n    spare1:\n      ansible_host: 10.0.0.9\n"),
    ],
)
def test_an_inventory_in_the_place_of_what_is_none_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "site").mkdir()
    inventory = write_site(tmp_path / "site").parent
    (inventory / name).parent.mkdir(parents=True, exist_ok=True)
    (inventory / name).write_text(text)
    with pytest.raises(DeployError) as raised:
        read_site(inventory)
    (finding,) = raised.value.findings
    assert (finding.where, finding.reference) == (str(inventory / name), "inventory-passed-over")


def test_a_plugin_by_its_full_name_makes_groups(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    inventory = write_site(tmp_path / "site").parent
    plugin = "plugin: ansible.builtin.constructed\ngroups: {rdma: inventory_hostname == 'node1'}\n"
    (inventory / "z.yml").write_text(plugin)
    assert read_site(inventory).groups["rdma"] == ("node1",)


@pytest.mark.parametrize("setting", ["ANSIBLE_VAULT_PASSWORD_FILE", "ANSIBLE_VAULT_IDENTITY_LIST"])
def test_the_environment_opens_vaults(tmp_path: Path, setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    password = tmp_path / "password"
    password.write_text("correct horse")
    variables = {"group_vars/slurm-master.yml": "slurmctld_cluster_name: hidden\n"}
    path = write_site(tmp_path, files=variables)
    fill_secrets(read_site(path), None)
    monkeypatch.setenv(setting, str(password) if setting.endswith("FILE") else f"prod@{password}")
    vault = str(Path(sys.executable).parent / "ansible-vault")
    files = [str(tmp_path / name) for name in ("secrets.yml", *variables)]
    subprocess.run([vault, "encrypt", *files], check=True)
    site = read_site(path)
    assert site.hosts["ctl1"].variables["slurmctld_cluster_name"] == "hidden"
    assert fill_secrets(site, None) == []


@pytest.mark.parametrize("others", ["dev@prompt", "dev@/nowhere/password"])
def test_a_vault_password_that_cannot_be_had_keeps_no_others_from_use(
    tmp_path: Path, others: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ansible goes on, whose users have all of theirs in their shells."""
    monkeypatch.setenv("ANSIBLE_VAULT_IDENTITY_LIST", others)
    assert read_site(write_site(tmp_path)).controller.name == "ctl1"


def test_an_inventory_means_the_same_in_every_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """What of Ansible's own settings does not reach a run must not reach the reading."""
    base = Path(ansible.__file__).with_name("config") / "base.yml"
    names = {each["name"] for of in yaml.safe_load(base.read_text()).values() for each in of.get("env", ())}
    for name in names:
        monkeypatch.setenv(name, "silently")
    strange = {name for name in names if "ANSIBLE_" in name and not name.startswith(tuple(KEPT))}
    assert "ANSIBLE_HASH_BEHAVIOUR" in strange
    for made in (listing_environment(), ansible_environment()):
        assert [name for name in strange if made.get(name) == "silently"] == []


def test_a_linked_inventory_has_the_variables_beside_the_link(tmp_path: Path) -> None:
    shared, own = tmp_path / "shared", tmp_path / "own"
    shared.mkdir()
    (own / "group_vars").mkdir(parents=True)
    (own / "hosts").symlink_to(write_site(shared))
    (own / "group_vars/all.yml").write_text("slurmctld_cluster_name: linked\n")
    site = read_site(own / "hosts")
    assert site.directory == own
    assert site.controller.variables["slurmctld_cluster_name"] == "linked"


def test_connection_variables_may_be_templates(tmp_path: Path) -> None:
    written = {
        "site_admin": "ops",
        "site_sudo": "sudo",
        "site_ssh": "ssh",
        "ansible_user": "{{ site_admin }}",
        "ansible_become_method": "{{ site_sudo }}",
        "ansible_connection": "{{ site_ssh }}",
        "ansible_port": "{{ 2200 + 22 }}",
        "ansible_ssh_common_args": "{{ '-o A=\"b c\"' }}",
    }
    site = read_site(write_site(tmp_path, files={"group_vars/all.yml": yaml.safe_dump(written)}))
    assert [finding for finding in check_site(site, None) if "ansible_" in finding.message] == []
    words = command(site.controller, Login())
    assert (words[words.index("-l") + 1], words[words.index("-p") + 1]) == ("ops", "2222")
    assert "A=b c" in words
