"""What was rehearsed of the example sites is nearly all that their users type."""

import json
import re
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.errors import Severity
from deploy.lab.rehearsed_site import inventory, is_left_behind, rehearsed, write
from deploy.site.checks import site_findings
from deploy.site.inventory import read_site
from deploy.site.schema import Option, options
from deploy.site.wording import is_computed
from tests.contract.content import ROOT

SITES = sorted(path.parent.name for path in ROOT.glob("inventory/sites/*/user-commands.yml"))
MOST_LEFT_OUT = 12
"""Over all sites; each has to say why no rehearsal could have it."""


def _declared(site: str) -> dict[str, dict[str, Any]]:
    text = (ROOT / f"inventory/sites/{site}/user-commands.yml").read_text(encoding="utf-8")
    return {command["id"]: command for command in yaml.safe_load(text)["commands"]}


def _rehearsed(site: str) -> dict[str, dict[str, Any]]:
    text = (ROOT / f"docs/rehearsals/{site}.json").read_text(encoding="utf-8")
    return {command["id"]: command for command in json.loads(text)["commands"]}


@pytest.mark.parametrize("site", SITES)
def test_all_that_users_type_was_rehearsed(site: str) -> None:
    assert [*_rehearsed(site)] == [*_declared(site)]


@pytest.mark.parametrize("site", SITES)
def test_only_what_says_so_is_left_out(site: str) -> None:
    declared = _declared(site)
    seen = _rehearsed(site)
    left_out = {name: command["why"] for name, command in seen.items() if command["verdict"] == "left out"}
    assert left_out == {name: [declared[name].get("cannot_run_here")] for name in left_out}


def test_few_commands_are_left_out() -> None:
    names = [
        f"{site} {name}"
        for site in SITES
        for name, command in _declared(site).items()
        if "cannot_run_here" in command
    ]
    assert len(names) <= MOST_LEFT_OUT, names


_NAMES_MACHINES = re.compile(
    r"_(hosts?|servers?|mirror|repository|relay|upstreams?|proxy|archive|registry|oidc|filesystems|mounts|address(es)?"
    r"|exports|clients|uris?|urls?)$"
)
_HARMLESS = {
    "a rehearsal fetches software from where the site does": {
        *("grafana_repository_key_url", "grafana_repository_uri"),
        *("nvidia_repository_container_key_url", "nvidia_repository_container_uri"),
        *("nvidia_repository_cuda_key_url", "nvidia_repository_cuda_uri", "slurm_packages_repository"),
        *("jupyter_server_index_url", "seff_index_url", "slurm_portal_index_url"),
    },
    "links in messages and pages": {
        *("alertmanager_external_url", "grafana_external_url", "prometheus_external_url"),
    },
    "where a daemon of its own listens": {
        *("alertmanager_listen_address", "mariadb_bind_address", "prometheus_listen_address"),
        "slurmdbd_address",
    },
    "of what containers have not: exporters of GPUs, nodes that are off": {
        *("gpu_exporter_dcgm_address", "slurmctld_cloud_addresses"),
    },
    "directories of the host itself": {"enroot_mounts"},
    "secrets of who asks, or is asked, inside": {
        *("alertmanager_web", "prometheus_web", "prometheus_scrape_settings", "blackbox_exporter_modules"),
        *("mariadb_users", "slurm_registry_accounts", "network_mounts_ceph_secrets"),
    },
}


def _is_asked(name: str, option: Option) -> bool:
    """A secret that is more than a word says whom it is for; a drill has those of the backup."""
    is_more = option.secret and option.spec.get("type") in ("dict", "list")
    return is_more or bool(_NAMES_MACHINES.search(name) and (option.secret or not is_computed(option.spec)))


def test_no_variable_names_a_machine_outside_of_a_rehearsal() -> None:
    """A new variable is left behind, or stands above with why it is harmless."""
    asked = {name for name, option in options().items() if _is_asked(name, option)}
    assert {name for name in asked if not is_left_behind(name)} == set().union(*_HARMLESS.values())


CERTIFICATE = "-----BEGIN CERTIFICATE-----\\nMIIB\\n-----END CERTIFICATE-----"
_INVENTORY = """\
[slurm-master]
ctl1 ansible_host=192.0.2.1
[slurm-node]
node1 ansible_host=192.0.2.2
[slurm-metric]
ctl1
[slurm-rest]
ctl1
[slurm-registry]
ctl1
[slurm-log]
ctl1
[slurm-cluster:children]
slurm-master
slurm-node
slurm-metric
slurm-log
"""
_OWN_CERTIFICATES = f"""\
slurm_rest_certificate: "{CERTIFICATE}"
slurm_rest_certificate_key: Kjh3d89fhsdkjfhKJHs8d7f
slurm_registry_certificate: "{CERTIFICATE}"
slurm_registry_certificate_key: Kjh3d89fhsdkjfhKJHs8d7f
slurm_registry_ca: "{CERTIFICATE}"
log_server_certificate: "{CERTIFICATE}"
log_server_key: Kjh3d89fhsdkjfhKJHs8d7f
log_client_ca: "{CERTIFICATE}"
"""
_DOCUMENTED = {
    "alerts": ("monitoring", "alertmanager_routes"),
    "directory": ("directory", "sssd_servers"),
    "mail": ("admin", "mail_relay_host"),
}


def _block(page: str, name: str) -> str:
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    blocks: list[str] = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    return next(block for block in blocks if f"{name}:" in block)


@pytest.mark.parametrize("what", [*_DOCUMENTED, "certificates"])
def test_a_site_with_what_is_documented_can_be_rehearsed(what: str, tmp_path: Path) -> None:
    """Its secrets are not there, and nothing is left that would be half given without them."""
    variables = _block(*_DOCUMENTED[what]) if what in _DOCUMENTED else _OWN_CERTIFICATES
    place = tmp_path / "site"
    (place / "group_vars").mkdir(parents=True)
    (place / "inventory.ini").write_text(_INVENTORY)
    (place / "group_vars/all.yml").write_text(variables)
    site = read_site(place / "inventory.ini")
    wanted = rehearsed(site, [], most=1, gpus=0)
    network = IPv4Network("10.213.7.0/24")
    addresses = {host.name: network[2 + index] for index, host in enumerate(wanted.hosts)}
    written = inventory(wanted, addresses, network, release="trixie", cgroup_v1=False)
    (tmp_path / "stage").mkdir()
    write(tmp_path / "stage/inventory.yml", written)
    copy = read_site(tmp_path / "stage/inventory.yml")
    faults = [str(found) for found in site_findings(copy) if found.severity is Severity.ERROR]
    assert faults == []
    halves = ("alertmanager_routes", "alertmanager_default_receiver", "sssd_", "mail_relay_")
    left = {name for host in copy.hosts.values() for name in host.variables if name.startswith(halves)}
    assert left == set()
