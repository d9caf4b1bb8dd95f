"""DCGM's diagnostics are those for the CUDA of the driver."""

import importlib

import pytest

from tests.unit.roles.loading import load_module

dcgm_cuda = load_module("roles/dcgm/library/dcgm_cuda.py")
devices = importlib.import_module("ansible.module_utils.nvidia_devices")


@pytest.mark.parametrize(
    ("branch", "version", "gpus", "expected"),
    [
        (580, (4, 4, 2), [devices.HOPPER, devices.HOPPER], ["13"]),
        (590, (4, 4, 2), [devices.BLACKWELL], ["13"]),
        (570, (4, 4, 2), [devices.HOPPER], ["12"]),
        (535, (4, 4, 2), [devices.AMPERE], ["12"]),
        (470, (4, 0, 0), [devices.AMPERE], ["11"]),
        # It has none for CUDA 13, and takes those for 12.
        (580, (4, 2, 3), [devices.HOPPER], ["12"]),
        (580, (4, 4, 2), [devices.VOLTA], ["12"]),
        (580, (4, 4, 2), [devices.VOLTA, devices.HOPPER], ["12", "13"]),
        (580, (4, 4, 2), [None], ["13"]),
        (580, (4, 4, 2), [], ["13"]),
        (0, (4, 4, 2), [devices.HOPPER], ["12"]),
    ],
)
def test_series(branch: int, version: tuple[int, ...], gpus: list[object], expected: list[str]) -> None:
    assert dcgm_cuda.series(branch, version, gpus) == expected
