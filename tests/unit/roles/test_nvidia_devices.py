from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module

devices = load_module("playbooks/module_utils/nvidia_devices.py")
hardware = load_module("playbooks/module_utils/node_hardware.py")


def add(sys: Path, slot: str, number: int, kind: str = "0x030200", vendor: str = "0x10de") -> None:
    place = sys / "bus/pci/devices" / slot
    place.mkdir(parents=True)
    for name, text in (("vendor", vendor), ("device", f"0x{number:04x}"), ("class", kind)):
        (place / name).write_text(text + "\n")


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0x102D, "Kepler"),
        (0x17FD, "Maxwell"),
        (0x15F8, "Pascal"),
        (0x1B38, "Pascal"),
        (0x1DB5, "Volta"),
        (0x1EB8, "Turing"),
        (0x2184, "Turing"),
        (0x20B2, "Ampere"),
        (0x2235, "Ampere"),
        (0x25B6, "Ampere"),
        (0x26B9, "Ada"),
        (0x2330, "Hopper"),
        (0x2342, "Grace Hopper"),
        (0x237E, "Hopper"),
        (0x2901, "Blackwell"),
        (0x2BB5, "Blackwell"),
        (0x3182, "Blackwell Ultra"),
    ],
)
def test_architecture(number: int, expected: str) -> None:
    assert devices.architecture(number).name == expected


def test_a_number_of_nobody_has_no_architecture() -> None:
    assert devices.architecture(0xF000) is None


def test_ranges_are_in_order_and_do_not_overlap() -> None:
    ends = [end for first, last, _ in devices._ARCHITECTURES for end in (first, last)]
    assert ends == sorted(ends)


def test_every_type_that_has_a_name_has_an_architecture() -> None:
    assert [hex(number) for number in devices._TYPE_OF if devices.architecture(number) is None] == []


def test_gpus_that_wait_for_their_driver_are_named(tmp_path: Path) -> None:
    add(tmp_path, "0000:81:00.0", 0x20B2)
    add(tmp_path, "0000:01:00.0", 0x20B2)
    add(tmp_path, "0000:01:00.1", 0x1AEF, kind="0x040300")
    add(tmp_path, "0000:02:00.0", 0x1234, vendor="0x1002")
    assert hardware.undriven_gpus(tmp_path) == [{"type": "a100", "count": 2}]


def test_types_that_wait_for_their_driver_are_those_of_their_places(tmp_path: Path) -> None:
    for slot, number in enumerate((0x20B2, 0x26B9, 0x20B2)):
        add(tmp_path, f"0000:0{slot}:00.0", number)
    assert hardware.undriven_gpus(tmp_path) == [
        {"type": "a100", "count": 2, "files": "/dev/nvidia[0,2]"},
        {"type": "l40s", "count": 1, "files": "/dev/nvidia1"},
    ]


def test_one_that_only_the_driver_can_name_leaves_the_answer_open(tmp_path: Path) -> None:
    add(tmp_path, "0000:01:00.0", 0x20B2)
    add(tmp_path, "0000:02:00.0", 0x2C02)
    assert hardware.undriven_gpus(tmp_path) is None


def test_no_gpus_on_the_bus(tmp_path: Path) -> None:
    assert hardware.undriven_gpus(tmp_path) == []


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([(0x20B2, "0x030200")], "none"),
        ([(0x2330, "0x030200"), (0x22A3, "0x068000")], "nvswitch"),
        ([(0x2901, "0x030200")], "nvlink5"),
    ],
)
def test_fabric(tmp_path: Path, numbers: list[tuple[int, str]], expected: str) -> None:
    for index, (number, kind) in enumerate(numbers):
        add(tmp_path, f"0000:0{index}:00.0", number, kind)
    assert devices.fabric(devices.read_devices(tmp_path)) == expected
