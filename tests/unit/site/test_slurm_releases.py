"""What a site asks for that not every Slurm knows; tests/unit/site/bad/slurm_source.py has what is said."""

from pathlib import Path

import pytest

from deploy.content import read_data, roles
from deploy.site.inventory import Site, read_site
from deploy.site.slurm_releases import _ASKS, slurm_needs
from tests.unit.site.sites import write_site

NVIDIA = "slurmctld_gres_autodetect: nvidia"
AUTH = "slurm_auth_type: auth/slurm"
REGISTERED = "slurmctld_cloud_addresses: registered"
FILTER = "slurmctld_cli_filter_lua"


def site(directory: Path, text: str) -> Site:
    return read_site(write_site(directory, files={"group_vars/all.yml": text}))


def asked(given: Site) -> dict[str, list[str]]:
    """By host what its Slurm has to know."""
    return {host.name: [need["setting"] for need in slurm_needs(given, host)] for host in given.cluster}


def test_every_need_of_the_role_is_looked_for_in_sites_and_no_other() -> None:
    table = read_data(roles() / "slurmctld" / "vars" / "main.yml")["__slurmctld_needs"]
    assert list(table) == list(_ASKS)
    assert {need["hosts"] for need in table.values()} == {"all", "nodes", "controllers"}


def test_a_site_as_it_is_by_default_asks_for_nothing(tmp_path: Path) -> None:
    assert not any(asked(site(tmp_path, "")).values())


@pytest.mark.parametrize(
    ("text", "setting", "hosts"),
    [
        (f"{NVIDIA}\n", NVIDIA, {"ctl1", "node1", "node2"}),
        (f"{AUTH}\n", AUTH, {"ctl1", "login1", "node1", "node2"}),
        ('slurmctld_cli_filter_lua: "x = 1"\n', FILTER, {"ctl1", "login1", "node1", "node2"}),
        ("slurmd_power_saving: machine\n", "slurmd_power_saving", {"ctl1"}),
        (f"{REGISTERED}\n", REGISTERED, {"ctl1"}),
        ("scratch_private_directories: [/tmp]\n", "scratch_private_directories", {"ctl1", "node1", "node2"}),
        (
            "mig_layout: [{devices: [1g.10gb]}]\n",
            "slurmctld_gres_autodetect: nvml, or mig_layout",
            {"ctl1", "node1", "node2"},
        ),
    ],
)
def test_those_are_asked_whose_release_counts(
    tmp_path: Path, text: str, setting: str, hosts: set[str]
) -> None:
    found = asked(site(tmp_path, text))
    assert {name for name, settings in found.items() if settings == [setting]} == hosts
