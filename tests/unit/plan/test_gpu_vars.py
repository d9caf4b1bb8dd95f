from pathlib import Path
from typing import Any

import pytest

from deploy.plan.build import build_plan
from deploy.plan.generated_inventory import generated_inventory
from deploy.plan.gpu_vars import slurm_gpus
from deploy.plan.questions import services_by_host
from deploy.site.inventory import Host, read_site
from tests.unit.site.sites import INVENTORY, write_site


def wired(directory: Path, text: str) -> tuple[dict[str, tuple[str, ...]], dict[str, Any]]:
    """The hosts of each phase, and every host's variables, of a site whose group_vars/all.yml is the text."""
    site = read_site(write_site(directory, files={"group_vars/all.yml": text}))
    plan = build_plan(site)
    phases = {step.phase.name: step.hosts for step in plan.steps}
    return phases, generated_inventory(site, plan, {})["all"]["children"]["phase_check"]["hosts"]


def test_nodes_get_a_driver_and_are_drained_by_the_controller(tmp_path: Path) -> None:
    phases, hosts = wired(tmp_path, "")
    assert phases["gpu"] == ("node1", "node2")
    assert hosts["node1"]["reboot_controller"] == "ctl1"
    assert hosts["node1"]["reboot_node"] == "node1"
    assert "reboot_node" not in hosts["login1"]
    assert "nvidia_repository_wanted" not in hosts["node1"]


def test_a_node_with_cuda_is_drained_whosever_its_driver_is(tmp_path: Path) -> None:
    _, hosts = wired(tmp_path, "nvidia_driver_source: none\ncuda_toolkit_versions: ['12.4']\n")
    assert hosts["node1"]["reboot_node"] == "node1"
    assert "reboot_node" not in hosts["login1"]


@pytest.mark.parametrize("source", ["none", "preinstalled"])
def test_a_driver_of_others_is_left_to_them(tmp_path: Path, source: str) -> None:
    phases, hosts = wired(tmp_path, f"nvidia_driver_source: {source}\n")
    assert "gpu" not in phases
    assert hosts["node1"]["host_check_host"]["installs_gpu_driver"] is False


def test_a_node_that_is_said_to_have_no_gpus_gets_nothing(tmp_path: Path) -> None:
    write_site(
        tmp_path, files={"host_vars/node2.yml": "slurmd_hardware: {cpus: 4, memory_mb: 8000, gpus: []}\n"}
    )
    plan = build_plan(read_site(tmp_path / "inventory.ini"))
    assert next(step.hosts for step in plan.steps if step.phase.name == "gpu") == ("node1",)


@pytest.mark.parametrize(
    ("text", "phase", "wanted"),
    [
        ("nvidia_driver_source: nvidia", "gpu", ["cuda"]),
        ('cuda_toolkit_versions: ["12.4"]', "cuda", ["cuda"]),
        ("dcgm_version: 4.4.2", "dcgm", ["cuda"]),
        ("gpu_exporter_source: dcgm", "gpu_exporter", ["cuda"]),
        ("container_toolkit_version: 1.18.1-1", "gpu_containers", ["container"]),
        ("{dcgm_version: 4.4.2, container_toolkit_version: 1.18.1-1}", "dcgm", ["cuda", "container"]),
    ],
)
def test_what_comes_from_nvidia_brings_its_repository(
    tmp_path: Path, text: str, phase: str, wanted: list[str]
) -> None:
    phases, hosts = wired(tmp_path, f"{text}\n")
    assert "node1" in phases[phase]
    assert hosts["node1"]["nvidia_repository_wanted"] == wanted


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        ("", "auto"),
        ("nvidia_driver_source: nvidia", "nvidia"),
        ('{nvidia_driver_source: nvidia, nvidia_driver_branch: "580"}', "nvidia 580"),
        ('{nvidia_driver_branch: "580", nvidia_driver_version: 580.95.05}', "auto 580.95.05"),
    ],
)
def test_dcgm_is_looked_at_again_where_the_site_asks_for_another_driver(
    tmp_path: Path, text: str, driver: str
) -> None:
    files = {"group_vars/all.yml": "dcgm_version: 4.4.2\n", "group_vars/slurm-node.yml": f"{text}\n"}
    site = read_site(write_site(tmp_path, files=files))
    hosts = generated_inventory(site, build_plan(site), {})["all"]["children"]["phase_check"]["hosts"]
    assert hosts["node1"]["dcgm_driver"] == driver


def test_cuda_of_the_distribution_needs_no_other_repository(tmp_path: Path) -> None:
    phases, hosts = wired(tmp_path, 'cuda_toolkit_versions: ["12.4"]\ncuda_toolkit_source: distribution\n')
    assert phases["cuda"] == ("ctl1", "login1", "node1", "node2")
    assert "nvidia_repository_wanted" not in hosts["login1"]


def test_slurm_offers_the_instances_of_divided_gpus(tmp_path: Path) -> None:
    layout = "mig_layout: [{gpus: [1], devices: [3g.40gb, 3g.40gb]}]\n"
    site = read_site(write_site(tmp_path, files={"host_vars/node1.yml": layout}))
    groups = generated_inventory(site, build_plan(site), {})["all"]["children"]
    one, two = groups["phase_controller"]["vars"]["slurmctld_nodes"]
    assert one["hardware"]["gpus"] == [{"type": "a100", "count": 1}, {"type": "3g.40gb", "count": 2}]
    assert one["gres_autodetect"] == "nvml"
    assert two["hardware"]["gpus"] == [{"type": "a100", "count": 2}]
    assert "gres_autodetect" not in two
    assert groups["phase_mig"]["hosts"] == {"node1": None}
    held_against = groups["phase_check"]["hosts"]["node1"]["slurmd_contract"]
    assert held_against["gpus"] == [{"type": "a100", "count": 2}]


@pytest.mark.parametrize(
    ("text", "layout", "types"),
    [
        ("", "", None),
        ('slurmctld_gres_autodetect: "off"', "", None),
        ("slurmctld_gres_autodetect: nvidia", "", ["a100"]),
        ("slurmctld_gres_autodetect: nvml", "", ["a100"]),
        ("", "[{gpus: [1], devices: [3g.40gb]}]", ["a100"]),
        ("", "[{devices: [7g.80gb]}]", []),
    ],
)
def test_types_that_slurm_looks_for_in_names(
    tmp_path: Path, text: str, layout: str, types: list[str] | None
) -> None:
    files = {"group_vars/all.yml": text, "host_vars/node1.yml": f"mig_layout: {layout}" if layout else ""}
    site = read_site(write_site(tmp_path, files={name: f"{value}\n" for name, value in files.items()}))
    hosts = generated_inventory(site, build_plan(site), {})["all"]["children"]["phase_check"]["hosts"]
    assert hosts["node1"]["host_check_host"]["gpu_types_by_name"] == types
    assert hosts["node1"]["slurmd_gpus_by_name"] is (types is not None)
    assert hosts["login1"]["host_check_host"]["gpu_types_by_name"] is None


def test_a_layout_divides_the_gpu_at_its_place() -> None:
    host = Host("n", {"mig_layout": [{"gpus": [0, 2], "devices": ["7g.80gb"]}]}, frozenset({"slurm-node"}))
    gpus = [
        {"type": "a100", "count": 2, "files": "/dev/nvidia[0,2]"},
        {"type": "l40s", "count": 1, "files": "/dev/nvidia1"},
    ]
    assert slurm_gpus(host, gpus) == [{"type": "7g.80gb", "count": 2}, {"type": "l40s", "count": 1}]


def test_a_layout_for_all_gpus() -> None:
    host = Host("n", {"mig_layout": [{"devices": ["7g.80gb"]}]}, frozenset({"slurm-node"}))
    assert slurm_gpus(host, [{"type": "a100", "count": 8}]) == [{"type": "7g.80gb", "count": 8}]


@pytest.mark.parametrize(
    ("text", "has_dcgm", "packages"),
    [
        ("", False, {"python3-venv"}),
        ("dcgm_version: 4.4.2", True, set()),
        # NVIDIA's exporter is for DCGM 4.
        ("dcgm_version: 3.3.9", False, {"python3-venv"}),
        ("{dcgm_version: 4.4.2, gpu_exporter_source: nvitop}", True, {"python3-venv"}),
        ("gpu_exporter_source: dcgm", False, set()),
        ("{dcgm_version: 4.4.2, nvidia_driver_source: none}", True, set()),
        ("nvidia_driver_source: preinstalled", False, {"python3-venv"}),
    ],
)
def test_which_exporter_tells_of_gpus(
    tmp_path: Path, text: str, *, has_dcgm: bool, packages: set[str]
) -> None:
    phases, hosts = wired(tmp_path, f"{text}\n")
    assert phases["gpu_exporter"] == ("node1", "node2")
    assert hosts["node1"]["gpu_exporter_has_dcgm"] is has_dcgm
    assert set(hosts["node1"].get("gpu_exporter_packages", ["python3-venv"])) == packages
    assert len(hosts["node1"]["gpu_exporter_wheels"]) == 6


@pytest.mark.parametrize("text", ["nvidia_driver_source: none", "gpu_exporter_source: none"])
def test_without_a_driver_or_a_wish_there_is_no_exporter(tmp_path: Path, text: str) -> None:
    phases, hosts = wired(tmp_path, f"{text}\n")
    assert "gpu_exporter" not in phases
    assert not any(name.startswith("gpu_exporter") for name in hosts["node1"])


def test_nobody_tells_where_nobody_watches(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path, f"{INVENTORY}[slurm-metric]\n", files={}))
    assert "gpu_exporter" not in {step.phase.name for step in build_plan(site).steps}
    hosts = generated_inventory(site, build_plan(site), {})["all"]["children"]["phase_check"]["hosts"]
    assert "gpu_exporter_has_dcgm" not in hosts["node1"]


def test_only_nodes_with_gpus_have_an_exporter_as_far_as_is_known(tmp_path: Path) -> None:
    declared = {"group_vars/slurm-node.yml": "slurmd_hardware: {cpus: 4, memory_mb: 8000}\n"}
    site = read_site(write_site(tmp_path, files=declared))
    contract = {"node1": {"gpus": []}, "node2": {"gpus": [{"type": "h100", "count": 4}]}}

    def has_exporter(contract: dict[str, Any]) -> list[list[str]]:
        plan = build_plan(site, contract)
        groups = generated_inventory(site, plan, contract)["all"]["children"]
        hosts = groups["phase_check"]["hosts"]
        services = services_by_host(site, contract)
        targets = groups["phase_targets"]["vars"]["scrape_targets_jobs"].get("gpu", [])
        ports = {name: {entry["port"] for entry in hosts[name]["host_check_host"]["ports"]} for name in hosts}
        return [
            list(groups["phase_gpu_exporter"]["hosts"]),
            [target["labels"]["instance"] for target in targets],
            [name for name in services if "gpu_exporter" in services[name]],
            [name for name in hosts if "gpu_exporter_wheels" in hosts[name]],
            [name for name in hosts if "9400" in hosts[name]["firewall_guarded"][0]["ports"]],
            [name for name in hosts if 9400 in ports[name]],
        ]

    assert has_exporter(contract) == [["node2"]] * 6
    assert has_exporter({}) == [[]] * 6


@pytest.mark.parametrize(
    ("text", "plugin"), [("", ""), ("slurmctld_gres_autodetect: nvml", "slurm-wlm-nvml-plugin")]
)
def test_nodes_whose_gpus_slurm_finds_get_what_finds_them(tmp_path: Path, text: str, plugin: str) -> None:
    without = {"cpus": 4, "memory_mb": 8000, "gpus": []}
    hardware = {"node1": {**without, "gpus": [{"type": "a100", "count": 2}]}, "node2": without}
    files = {"group_vars/all.yml": f"{text}\n", "group_vars/slurm-node.yml": "slurmd_weight: 1\n"}
    site = read_site(write_site(tmp_path, files=files))
    groups = generated_inventory(site, build_plan(site, hardware), hardware)["all"]["children"]
    hosts = groups["phase_check"]["hosts"]
    assert (hosts["node1"]["slurmd_nvml_plugin"], hosts["node2"]["slurmd_nvml_plugin"]) == (plugin, "")
