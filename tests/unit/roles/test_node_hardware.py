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


def test_memory_is_what_the_kernel_shows() -> None:
    assert hardware.parse_memory("MemTotal:       1048576 kB\nMemFree: 1 kB\n") == 1024


@pytest.mark.parametrize(("lost_mb", "is_less"), [(0, False), (4, False), (5000, False), (16000, True)])
def test_a_kernel_that_shows_a_little_less_is_within_the_contract(
    monkeypatch: pytest.MonkeyPatch, lost_mb: int, *, is_less: bool
) -> None:
    read = hardware.Path.read_text
    shown = 515_584

    def read_text(path: Path, **how: str) -> str:
        is_asked = path == Path("/proc/meminfo")
        return f"MemTotal: {shown * 1024} kB\n" if is_asked else str(read(path, **how))

    monkeypatch.setattr(hardware.Path, "read_text", read_text)
    monkeypatch.setattr(hardware, "read_gpus", lambda *_, **__: [])
    contract = hardware.discover_hardware(lambda _: "0,0,0\n")
    assert contract["memory_mb"] == 505_272
    shown -= lost_mb
    less = hardware.shortfalls(contract, hardware.read_hardware(lambda _: "0,0,0\n"))
    assert bool(less) is is_less


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


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA H200", "h200"),
        ("Tesla V100-SXM2-32GB", "v100"),
        ("NVIDIA RTX A6000", "a6000"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA TITAN V", "titan"),
        ("NVIDIA GeForce RTX 3090", "rtx_3090"),
        ("NVIDIA GeForce GTX 1080 Ti", "gtx_1080"),
        ("Quadro RTX 6000", "rtx_6000"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx_6000"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx_pro_6000"),
        ("NVIDIA RTX PRO 4500 Blackwell", "rtx_pro_4500"),
        ("NVIDIA Graphics Device", "nvidia_graphics_device"),
    ],
)
def test_the_type_by_which_slurm_finds_a_gpu_is_a_part_of_its_name(model: str, expected: str) -> None:
    """As Slurm compares them (gres_gpu.c): names in small letters with _ for blanks."""
    assert hardware.type_by_name(model) == expected
    assert expected in model.lower().replace(" ", "_")


def gpu_in_proc(proc: Path, slot: str, model: str, minor: int | None = None) -> None:
    place = proc / "driver/nvidia/gpus" / slot
    place.mkdir(parents=True)
    number = "" if minor is None else f"Device Minor: \t {minor}\n"
    (place / "information").write_text(f"Model: \t\t {model}\nIRQ: 1\n{number}GPU Excluded:\t No\n")


def a_bus(directory: Path, *gpus: tuple[str, int | None]) -> list[dict[str, object]]:
    """What is read of GPUs in the order of the bus, each with its model and its number."""
    for slot, (model, minor) in enumerate(gpus):
        gpu_in_proc(directory / "proc", f"0000:{slot:02x}:00.0", model, minor)
    return hardware.read_gpus(directory / "proc", directory / "dev", directory / "sys")  # type: ignore[no-any-return]


def test_gpus_as_the_driver_lists_them(tmp_path: Path) -> None:
    gpu_in_proc(tmp_path / "proc", "0000:01:00.0", "NVIDIA A100-PCIE-40GB")
    gpu_in_proc(tmp_path / "proc", "0000:02:00.0", "NVIDIA A100-PCIE-40GB")
    found = hardware.read_gpus(tmp_path / "proc", tmp_path / "dev", tmp_path / "sys")
    assert found == [{"type": "a100", "count": 2}]


A100, L40S = "NVIDIA A100-PCIE-40GB", "NVIDIA L40S"


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        # As without files: the first type has the first numbers.
        ([(A100, 0), (A100, 1), (L40S, 2)], [("a100", 2, None), ("l40s", 1, None)]),
        ([(A100, 1), (A100, 0)], [("a100", 2, None)]),
        ([(A100, None), (A100, None)], [("a100", 2, None)]),
        ([(A100, 0), (L40S, 1), (A100, 2)], [("a100", 2, "/dev/nvidia[0,2]"), ("l40s", 1, "/dev/nvidia1")]),
        (
            [(A100, None), (L40S, None), (A100, None)],
            [("a100", 2, "/dev/nvidia[0,2]"), ("l40s", 1, "/dev/nvidia1")],
        ),
        ([(L40S, 2), (A100, 0), (A100, 1)], [("a100", 2, None), ("l40s", 1, None)]),
        ([(A100, 4), (A100, 0), (A100, 1)], [("a100", 3, "/dev/nvidia[0-1,4]")]),
    ],
)
def test_types_are_those_of_their_device_files(
    tmp_path: Path, gpus: list[tuple[str, int | None]], expected: list[tuple[str, int, str | None]]
) -> None:
    assert a_bus(tmp_path, *gpus) == [
        {"type": kind, "count": count} | ({"files": files} if files else {})
        for kind, count, files in expected
    ]


def test_gpus_that_slurm_finds_by_itself_have_types_by_which_it_does(tmp_path: Path) -> None:
    a_bus(tmp_path, ("NVIDIA GeForce RTX 3090", 0))
    places = (tmp_path / "proc", tmp_path / "dev", tmp_path / "sys")
    assert hardware.read_gpus(*places) == [{"type": "rtx3090", "count": 1}]
    assert hardware.read_gpus(*places, by_name=True) == [{"type": "rtx_3090", "count": 1}]


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


@pytest.mark.parametrize(
    ("files", "is_missed"), [("/dev/nvidia[0,2]", True), ("/dev/nvidia7", True), ("/srv/nvidia[0-1]", False)]
)
def test_gpus_whose_files_are_named_are_counted_where_they_are_the_drivers(
    files: str, *, is_missed: bool
) -> None:
    expected = {"gpus": [{"type": "a100", "count": 2, "files": files}]}
    less = hardware.shortfalls(expected, {"gpus": [{"type": "a100", "count": 1}]})
    assert bool(less) is is_missed


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
