"""What the node exporter is told about a host, on directories that look like one."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from deploy.run import drains
from tests.unit.roles.loading import load_module

DRIVER = """\
NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.133.20  Release Build  (dvs-builder@U16)
GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)
"""
PROPRIETARY = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.163.01  Mon Apr  8 12:49:09 UTC 2025\n"


@pytest.fixture(scope="module")
def program() -> Any:  # noqa: ANN401 - a module that is loaded by its path
    return load_module("roles/deploy_metrics/files/usr/local/lib/deploy_metrics/deploy_metrics.py")


def write(root: Path, path: str, text: str = "") -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def told(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    return {
        family.name: {tuple(one.labels.values()): one.value for one in family.samples}
        for family in text_string_to_metric_families(text)
    }


def test_a_bare_host_tells_nothing(program: Any, tmp_path: Path) -> None:  # noqa: ANN401
    assert program.text(tmp_path, munge_works=None) == ""


def test_records_are_told_and_broken_ones_are_left_out(program: Any, tmp_path: Path) -> None:  # noqa: ANN401
    write(tmp_path, "var/lib/deploy/converged/base.json", json.dumps({"at": 12.5, "version": '0.1"x'}))
    write(tmp_path, "var/lib/deploy/converged/torn.json", '{"at": 1')
    write(tmp_path, "var/lib/deploy/converged/other.json", '{"version": "1"}')
    found = told(program.text(tmp_path, munge_works=False))
    assert found["deploy_phase_converged_timestamp_seconds"] == {("base",): 12.5}
    assert found["deploy_phase_info"] == {("base", '0.1"x'): 1}
    assert found["deploy_munge_success"] == {(): 0}


def test_the_drains_of_the_ledger_are_told_by_the_reason_that_slurm_shows(
    program: Any,  # noqa: ANN401
    tmp_path: Path,
) -> None:
    entries = [
        {"node": "node1", "who": "alice", "why": "fan", "since": 5},
        {"node": "node1", "who": "root", "why": "node_health: x", "since": 4, "is_foreign": True},
    ]
    write(tmp_path, "var/lib/deploy/drains.json", json.dumps(entries))
    shown = drains.words(entries[0])
    found = told(program.text(tmp_path, munge_works=None))
    assert found == {"deploy_drain_timestamp_seconds": {("node1", shown): 5}}
    write(tmp_path, "var/lib/deploy/drains.json", '[{"node"')
    assert program.text(tmp_path, munge_works=None) == ""


def test_the_configuration_in_use_is_the_one_from_the_controller(
    program: Any,  # noqa: ANN401
    tmp_path: Path,
) -> None:
    def checksum(text: str) -> tuple[str]:
        return (hashlib.sha256(text.encode()).hexdigest(),)

    write(tmp_path, "etc/slurm/slurm.conf", "ClusterName=a\n")
    assert list(told(program.text(tmp_path, munge_works=None))["deploy_slurm_configuration_info"]) == [
        checksum("ClusterName=a\n")
    ]
    write(tmp_path, "run/slurm/conf/slurm.conf", "ClusterName=b\n")
    assert list(told(program.text(tmp_path, munge_works=None))["deploy_slurm_configuration_info"]) == [
        checksum("ClusterName=b\n")
    ]
    # Debian 12's slurmd needs an empty one, which nobody reads.
    write(tmp_path, "run/slurm/conf/slurm.conf", "\n")
    assert list(told(program.text(tmp_path, munge_works=None))["deploy_slurm_configuration_info"]) == [
        checksum("ClusterName=a\n")
    ]


@pytest.mark.parametrize(
    ("driver", "library", "expected"),
    [
        (DRIVER, "570.133.20", {("570.133.20", "570.133.20"): 1}),
        (PROPRIETARY, "550.163.01", {("550.163.01", "550.163.01"): 1}),
        (DRIVER, "570.172.08", {("570.133.20", "570.172.08"): 0}),
        (DRIVER, "", {("570.133.20", "none"): 0}),
    ],
)
def test_driver_in_the_kernel_is_held_against_its_library(
    program: Any,  # noqa: ANN401
    tmp_path: Path,
    driver: str,
    library: str,
    expected: dict[tuple[str, str], float],
) -> None:
    write(tmp_path, "proc/driver/nvidia/version", driver)
    if library:
        write(tmp_path, f"usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{library}")
        write(tmp_path, "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1")
    found = told(program.text(tmp_path, munge_works=None))["deploy_nvidia_driver_match"]
    assert found == expected


@pytest.mark.parametrize(
    "place",
    [
        "usr/lib/x86_64-linux-gnu",
        # Debian's own driver.
        "usr/lib/x86_64-linux-gnu/nvidia/current",
        "usr/lib/aarch64-linux-gnu",
        "usr/lib64",
        "usr/lib",
        "usr/local/nvidia/lib64",
    ],
)
def test_the_library_is_where_the_checks_of_hosts_find_it(program: Any, tmp_path: Path, place: str) -> None:  # noqa: ANN401
    write(tmp_path, "proc/driver/nvidia/version", DRIVER)
    write(tmp_path, f"{place}/libnvidia-ml.so.570.133.20")
    checks = load_module("playbooks/module_utils/host_checks/nvidia_driver.py")
    assert checks.library_version(tmp_path) == "570.133.20"
    found = told(program.text(tmp_path, munge_works=None))["deploy_nvidia_driver_match"]
    assert found == {("570.133.20", "570.133.20"): 1}


def test_the_file_is_replaced_as_a_whole(program: Any, tmp_path: Path) -> None:  # noqa: ANN401
    file = tmp_path / "deploy.prom"
    file.write_text("old")
    program.replace(file, "new\n")
    assert file.read_text() == "new\n"
    assert [path.name for path in tmp_path.iterdir()] == ["deploy.prom"]
    assert file.stat().st_mode & 0o777 == 0o644


def test_a_directory_that_is_missing_ends_it_with_a_line(
    program: Any,  # noqa: ANN401
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert program.main([str(tmp_path / "missing" / "deploy.prom")]) == 1
    assert "No such file or directory" in capsys.readouterr().err
