from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from deploy.content import read_data, roles
from deploy.plan.build import build_plan
from deploy.plan.generated_inventory import generated_inventory
from deploy.plan.slurm_source import BUILT_FOR, built_archive
from deploy.site.inventory import Site, read_site
from tests.unit.site.sites import write_site

DIGEST = "AB" * 32
BUILT = (
    "slurm_packages_source: schedmd\nslurm_packages_version: '26.05'\n"
    f"slurm_packages_tarball: {{url: https://mirror.site/slurm.tar.bz2, sha256: {DIGEST}}}\n"
)
ROLE = roles() / "slurm_packages"


def site(directory: Path, text: str = BUILT) -> Site:
    return read_site(write_site(directory, files={"group_vars/all.yml": text}))


def test_the_first_controller_builds_before_anybody_installs(tmp_path: Path) -> None:
    phases = {step.phase.name: step.hosts for step in build_plan(site(tmp_path)).steps}
    assert phases["slurm_build"] == ("ctl1",)
    names = list(phases)
    assert names.index("slurm_build") < names.index("packages")


def test_nobody_builds_the_distributions_packages(tmp_path: Path) -> None:
    assert "slurm_build" not in {step.phase.name for step in build_plan(site(tmp_path, "")).steps}


def test_roles_are_told_the_other_names(tmp_path: Path) -> None:
    given = site(tmp_path, f"{BUILT}job_ssh_packages: [own]\n")
    hosts = generated_inventory(given, build_plan(given), {})["all"]["children"]["phase_check"]["hosts"]
    node = hosts["node1"]
    assert node["slurm_packages_exchange_directory"] == str(tmp_path.resolve() / ".deploy/packages")
    assert node["pyxis_build_packages"] == ["gcc", "make", "libc6-dev", "slurm-smd-dev"]
    assert node["slurmd_nvml_plugin"] == node["mig_slurm_plugin"] == ""
    assert (node["slurm_tokens_packages"], node["slurm_rest_packages"]) == ([], ["nginx"])
    assert "job_ssh_packages" not in node  # the site says it
    assert not [name for name in node["bootstrap_packages"] if "slurm" in name]
    expected = node["host_check_host"]
    assert {"slurm-smd-client", "slurm-smd-slurmd"} <= {*expected["packages"]}
    assert (expected["slurm_is_built"], expected["slurm_wanted"]) == (True, "26.05")


def test_the_distributions_packages_have_their_own(tmp_path: Path) -> None:
    given = site(tmp_path, "")
    hosts = generated_inventory(given, build_plan(given), {})["all"]["children"]["phase_check"]["hosts"]
    expected = hosts["ctl1"]["host_check_host"]
    assert {"slurm-client", "slurmctld", "slurmdbd"} <= {*expected["packages"]}
    assert expected["slurm_is_built"] is False


@pytest.mark.parametrize("beside", [[], ["libnvidia-ml-dev", "a"]])
def test_the_role_calls_the_archive_the_same(tmp_path: Path, beside: list[str]) -> None:
    given = site(tmp_path, f"{BUILT}slurm_packages_built_with: {beside}\n")
    told = {
        "slurm_packages_tarball": {"url": "", "sha256": DIGEST},
        "slurm_packages_built_with": beside,
        "__slurm_packages_release": "Debian-13",
    }
    said = read_data(ROLE / "vars" / "main.yml")
    key = trust_as_template(said["__slurm_packages_key"])
    name = trust_as_template(said["__slurm_packages_built"])
    templar = Templar(loader=DataLoader(), variables={**told, "__slurm_packages_key": key})
    assert built_archive(given, "Debian-13").name == f"{templar.template(name)}.tar"


def test_packages_are_built_for_the_releases_that_the_role_knows() -> None:
    table = read_data(ROLE / "vars" / "main.yml")["__slurm_packages_by_release"]
    assert tuple(name for name, sources in table.items() if sources["schedmd"]) == BUILT_FOR
