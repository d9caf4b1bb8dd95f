"""What the offline checks know by themselves agrees with the roles and the catalog."""

from pathlib import Path

import pytest

from deploy.plan.catalog import PHASES
from deploy.site.inventory import DATABASE, MASTER, read_site
from deploy.site.rules import RULES, Form
from deploy.site.schema import options
from deploy.site.secrets import secret_names
from deploy.site.variables_check import _ALIKE, _ALIKE_ROLES, _EVERYWHERE, _OF_EACH, _READERS, readers
from deploy.site.wording import with_keys
from tests.unit.site.sites import INVENTORY, write_site

_BY_DATA = {
    *(
        "login_limits",
        "slurm_tokens",
        "firewall",
        "job_programs",
        "jupyter_server",
        "log_client",
        "backup",
        "conda",
        "mail_relay",
        "ml_stack",
        "nfs_client",
        "network_mounts",
        "openmpi",
        "proxy",
        "quotas",
        "shared_directories",
        "software_tree",
        "sssd",
    ),
    *("alertmanager", "blackbox_exporter", "grafana", "mysqld_exporter", "prometheus", "scrape_targets"),
    "gpu_exporter",
    *("slurm_metrics", "slurm_budgets", "slurm_energy", "slurm_groups"),
    "mariadb_arbiter",
    *("apptainer", "container_toolkit", "cuda_toolkit", "dcgm", "gpu_modes", "mig"),
    *("nvidia_repository", "rdma"),
}
"""Roles whose hosts are those for which the site declares something."""

_SEVERAL = (
    INVENTORY.replace("[slurm-master]\nctl1\n", "[slurm-master]\nctl1\nctl2\n")
    .replace("[slurm-login]", "[slurm-database]\nlogin1\ndb2\nctl1\n\n[slurm-login]")
    .replace("\nnode1 ", "\nctl2 ansible_host=10.0.0.3\ndb2 ansible_host=10.0.0.4\nnode1 ")
    + "slurm-database\n"
)
"""Two controllers, and a database on two hosts with an arbitrator."""


def _paths() -> set[str]:
    """Every value that can be set, named as rules name it: elements of lists of texts, too."""
    specs = {name: option.spec for name, option in options().items()}
    return {
        f"{path}[]" if spec.get("type") == "list" and not spec.get("options") else path
        for path, spec in with_keys(specs)
    }


def test_every_rule_is_for_a_variable() -> None:
    assert sorted(RULES.keys() - _paths()) == []


@pytest.mark.parametrize("name", [name for name, option in options().items() if name in RULES])
def test_every_default_keeps_to_its_rule(name: str) -> None:
    default = options()[name].spec.get("default")
    assert default is None or RULES[name].fits(default)


def test_every_example_keeps_to_its_rule() -> None:
    judged = [rule for rule in RULES.values() if isinstance(rule, Form) and rule.judge]
    assert judged
    assert all(rule.fits(rule.example) for rule in judged)


@pytest.mark.parametrize("inventory", [INVENTORY, _SEVERAL])
def test_the_readers_of_a_role_are_the_hosts_of_its_phases(tmp_path: Path, inventory: str) -> None:
    site = read_site(write_site(tmp_path, inventory))
    for role in _READERS:
        reading = {host.name for phase in PHASES if role in phase.roles for host in phase.candidates(site)}
        assert reading == {host.name for host in readers(site, role) or ()}, role
    everywhere = (
        {role for phase in PHASES for role in phase.roles}
        - _READERS.keys()
        - {"pyxis", "slurm_client"}
        - _BY_DATA
    )
    assert everywhere == _EVERYWHERE
    for role in everywhere:
        reading = {host.name for phase in PHASES if role in phase.roles for host in phase.candidates(site)}
        assert reading == set(site.hosts), role


def test_secrets_are_read_by_all_by_the_controller_or_by_a_host_of_its_own() -> None:
    roles = {options()[name].role for name in secret_names()}
    assert {role for role in roles if _READERS.get(role) not in {MASTER, DATABASE}} == {
        *("grafana", "munge", "slurm_auth", "slurm_portal", "slurm_registry", "slurm_rest", "slurm_tokens"),
        "ssh_server",
    }


def test_what_must_be_alike_exists() -> None:
    assert set(_ALIKE) <= options().keys()
    assert _ALIKE_ROLES.keys() <= _READERS.keys()
    assert {options()[name].role for name in _OF_EACH} <= _ALIKE_ROLES.keys()
