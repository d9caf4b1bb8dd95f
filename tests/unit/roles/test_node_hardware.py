import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.roles.loading import load_module

hardware = load_module("playbooks/module_utils/node_hardware.py")

TWO_SOCKETS_WITH_THREADS = "# CPU,Core,Socket\n" + "\n".join(
    f"{cpu},{cpu % 4},{(cpu % 4) // 2}" for cpu in range(8)
)


def test_topology() -> None:
    assert hardware.parse_topology(TWO_SOCKETS_WITH_THREADS) == {
        "cpus": 8,
        "sockets": 2,
        "cores_per_socket": 2,
        "threads_per_core": 2,
    }


def test_an_uneven_machine_is_described_by_its_cpus_alone() -> None:
    assert hardware.parse_topology("0,0,0\n1,1,0\n2,2,1\n3,2,1\n4,3,1\n") == {"cpus": 5}


def test_memory_leaves_some_to_the_system() -> None:
    assert hardware.parse_memory("MemTotal:       1048576 kB\nMemFree: 1 kB\n") == 1003


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA H200", "h200"),
        ("Tesla V100-SXM2-32GB", "v100"),
        ("NVIDIA GeForce RTX 3090", "rtx3090"),
        ("NVIDIA RTX A6000", "a6000"),
        ("Quadro RTX 6000", "rtx6000"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("NVIDIA L40S", "l40s"),
        ("", "gpu"),
    ],
)
def test_gpu_type(model: str, expected: str) -> None:
    assert hardware.gpu_type(model) == expected


def gpu_in_proc(proc: Path, slot: str, model: str) -> None:
    place = proc / "driver/nvidia/gpus" / slot
    place.mkdir(parents=True)
    (place / "information").write_text(f"Model: \t\t {model}\nIRQ: 1\n")


def test_gpus_as_the_driver_lists_them(tmp_path: Path) -> None:
    gpu_in_proc(tmp_path / "proc", "0000:01:00.0", "NVIDIA A100-PCIE-40GB")
    gpu_in_proc(tmp_path / "proc", "0000:02:00.0", "NVIDIA A100-PCIE-40GB")
    found = hardware.read_gpus(tmp_path / "proc", tmp_path / "dev", tmp_path / "sys")
    assert found == [{"type": "a100", "count": 2}]


def test_gpus_without_a_driver_are_unknown_rather_than_none(tmp_path: Path) -> None:
    device = tmp_path / "sys/bus/pci/devices/0000:01:00.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x10de\n")
    (device / "class").write_text("0x030200\n")
    (device / "device").write_text("0x20b0\n")
    assert hardware.read_gpus(tmp_path / "proc", tmp_path / "dev", tmp_path / "sys") is None


def test_no_gpus(tmp_path: Path) -> None:
    assert hardware.read_gpus(tmp_path / "proc", tmp_path / "dev", tmp_path / "sys") == []


def test_less_than_the_contract_is_named_and_more_is_not() -> None:
    found = {"cpus": 8, "memory_mb": 900, "gpus": [{"type": "a100", "count": 1}]}
    expected = {"cpus": 4, "memory_mb": 1000, "gpus": [{"type": "a100", "count": 2}]}
    assert hardware.shortfalls(expected, found) == [
        "memory_mb: the contract says 1000, the machine shows 900",
        "gpus: the contract says 2, the machine shows 1",
    ]
    assert hardware.shortfalls({}, found) == []


def test_this_machine_can_be_read() -> None:
    found = hardware.read_hardware(lambda command: subprocess.check_output(command, text=True))
    assert found["cpus"] >= 1
    assert found["memory_mb"] > 100


def test_the_disk_of_a_directory_that_is_yet_to_be_made(tmp_path: Path) -> None:
    asked: list[Path] = []

    def statvfs(path: Path) -> SimpleNamespace:
        asked.append(path)
        return SimpleNamespace(f_blocks=2_000_001, f_frsize=4096, f_bfree=1)

    assert hardware.disk_mb(tmp_path / "a/b", statvfs) == 7168
    assert asked == [tmp_path]
