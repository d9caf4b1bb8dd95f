from pathlib import Path

import pytest

from deploy.bundle.contents import Contents, Download, contents_of
from deploy.site.inventory import read_site
from deploy.site.versions import catalogue
from tests.unit.site.sites import INVENTORY, write_site

DIGEST = "0" * 64
VARIABLES = f"""\
bootstrap_mirror: https://mirror.site/pub
openmpi_packages: [openmpi-bin, libopenmpi-dev]
pyxis_source: {{version: "1", url: "https://example.org/a/pyxis.tar.gz", sha256: "{DIGEST}"}}
enroot_package_files:
  - {{url: "file:///srv/enroot.deb", sha256: "{DIGEST}"}}
ml_stack_environments: [{{name: torch, packages: [torch]}}]
gpu_exporter_source: none
"""


def contents(tmp_path: Path) -> Contents:
    return contents_of(read_site(write_site(tmp_path, files={"group_vars/all.yml": VARIABLES})), {})


def test_packages_that_hosts_install_together(tmp_path: Path) -> None:
    found = contents(tmp_path)
    controller = next(names for names in found.packages if "slurmctld" in names)
    assert {"slurmdbd", "mariadb-server", "munge", "python3-apt", "openmpi-bin", "libpmix-dev"} <= controller
    assert {"gcc", "gfortran"} <= controller
    assert "slurmd" not in controller
    assert any("slurmd" in names for names in found.packages)


def test_files_come_from_where_they_are_and_not_from_the_mirror(tmp_path: Path) -> None:
    inventory = f"{INVENTORY}[slurm-container:children]\nslurm-node\n"
    found = contents_of(
        read_site(write_site(tmp_path, inventory, {"group_vars/all.yml": "bootstrap_mirror: http://m/"})), {}
    )
    pyxis = catalogue()["pyxis_source"]
    assert Download(pyxis["url"], pyxis["sha256"]) in found.downloads
    assert not any(download.url.startswith("http://m/") for download in found.downloads)


def test_apptainer_is_fetched_where_the_site_names_a_version(tmp_path: Path) -> None:
    package = catalogue()["apptainer_package_files"][0]
    found = contents_of(
        read_site(write_site(tmp_path, files={"group_vars/all.yml": 'apptainer_version: "1.5.3"\n'})), {}
    )
    assert Download(package["url"], package["sha256"]) in found.downloads
    assert any({"fakeroot", "uidmap"} <= names for names in found.packages)
    assert package["url"] not in {download.url for download in contents(tmp_path).downloads}


def test_what_no_bundle_can_hold_is_said(tmp_path: Path) -> None:
    found = contents(tmp_path)
    assert found.downloads == ()
    assert [line.split()[0] for line in found.left_out] == [
        "Grafana:",
        "Python",
        "https://example.org/a/pyxis.tar.gz,",
    ]


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ("nvidia_driver_source: nvidia", "NVIDIA's repository"),
        ("seff_reportseff: true", "reportseff"),
        ('slurm_packages_repository: {uri: "http://x/"}', "slurm_packages_repository"),
    ],
)
def test_what_a_site_takes_from_elsewhere_is_said_where_it_does(
    tmp_path: Path, variables: str, said: str
) -> None:
    site = write_site(tmp_path, files={"group_vars/all.yml": VARIABLES})
    assert said not in str(contents_of(read_site(site), {}).left_out)
    (tmp_path / "group_vars/all.yml").write_text(VARIABLES + variables)
    assert said in str(contents_of(read_site(site), {}).left_out)


def test_python_packages_of_the_portal_are_said(tmp_path: Path) -> None:
    inventory = f"{INVENTORY}[slurm-portal]\nlogin1\n"
    left_out = contents_of(read_site(write_site(tmp_path, inventory)), {}).left_out
    assert any("slurm_portal_index_url" in line for line in left_out)
    assert any("jupyter_server_index_url" in line for line in left_out)


def test_the_driver_of_the_distribution_is_there_with_each_kind_of_modules(tmp_path: Path) -> None:
    site = read_site(
        write_site(tmp_path, files={"group_vars/all.yml": "nvidia_driver_source: distribution\n"})
    )
    drivers = [names for names in contents_of(site, {}, architecture="arm64").packages if "libcuda1" in names]
    assert {frozenset({"nvidia-open-kernel-dkms", "nvidia-kernel-dkms"} & names) for names in drivers} == {
        frozenset({"nvidia-open-kernel-dkms"}),
        frozenset({"nvidia-kernel-dkms"}),
    }
    always = {"nvidia-smi", "nvidia-persistenced", "firmware-nvidia-gsp", "linux-headers-arm64"}
    assert all(always <= names for names in drivers)


def test_what_comes_from_the_distribution_is_no_download(tmp_path: Path) -> None:
    variables = (
        'apptainer_version: "1.4"\napptainer_source: distribution\n'
        'cuda_toolkit_source: distribution\ncuda_toolkit_versions: ["11.8"]\n'
    )
    found = contents_of(read_site(write_site(tmp_path, files={"group_vars/all.yml": variables})), {})
    assert any({"apptainer", "nvidia-cuda-toolkit"} <= names for names in found.packages)
    assert not any("apptainer" in download.url for download in found.downloads)


def test_what_nodes_may_need_is_there_before_they_were_seen(tmp_path: Path) -> None:
    unseen = {"group_vars/slurm-node.yml": ""}
    site = read_site(write_site(tmp_path, files=unseen))
    wheels = {Download(wheel["url"], wheel["sha256"]) for wheel in catalogue()["gpu_exporter_wheels"]}
    assert wheels <= set(contents_of(site, {}).downloads)
    seen = {name: {"cpus": 4, "memory_mb": 8000, "gpus": []} for name in ("node1", "node2")}
    assert not wheels & set(contents_of(site, seen).downloads)


def test_what_finds_gpus_is_there_and_what_only_begins_names_of_packages_is_not(tmp_path: Path) -> None:
    variables = "slurmctld_gres_autodetect: nvml\n"
    found = contents_of(read_site(write_site(tmp_path, files={"group_vars/all.yml": variables})), {})
    node = next(names for names in found.packages if "slurmd" in names)
    assert "slurm-wlm-nvml-plugin" in node
    assert not {"cuda-", "dcgm", "slurm", "nvidia"} & node
    assert not any("slurm-wlm-nvml-plugin" in names for names in contents(tmp_path).packages)
