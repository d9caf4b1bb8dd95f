"""Users choose among versions of CUDA, and get the compiler and the libraries of the one they chose."""

import pytest

from molecule.conftest import Converge, On

# The package with the run-time library, which is small, and the version of it that the release has.
DEBIAN = {"bookworm": ("libcudart11.0", "11.8"), "trixie": ("libcudart12", "12.4")}


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("module load cuda && nvcc --version && echo $CUDA_HOME", "release 12.6\n/usr/local/cuda-12.6\n"),
        (
            "module load cuda/12.4 && nvcc --version && echo $CUDA_HOME",
            "release 12.4\n/usr/local/cuda-12.4\n",
        ),
        ("module load cuda/12.4 && module swap cuda/12.6 && nvcc", "release 12.6\n"),
        ("module load cuda && module purge && type nvcc", ""),
    ],
)
def test_a_user_chooses(on: On, machine: str, typed: str, expected: str) -> None:
    answer = on(machine, "runuser", "-u", "nobody", "--", "bash", "--login", "-c", typed, check=False)
    assert answer.stdout == expected, answer.stderr


def test_a_library_is_of_its_version_though_there_is_a_later_one(on: On, machine: str) -> None:
    for package in ("libnccl2", "libnccl-dev"):
        shown = on(machine, "dpkg-query", "--show", "--showformat=${Version}", package).stdout
        assert shown == "2.21.5-1+cuda12.4"


def test_a_distribution_has_one_version_and_no_other(on: On, converge: Converge, machine: str) -> None:
    package, version = DEBIAN[machine]
    answer = converge(only=machine, source="distribution", versions=["9.9"], parts=[package])
    assert f"no package source of this machine has {package} 9.9" in answer.stderr
    answer = converge(only=machine, source="distribution", versions=[version], parts=[package])
    assert answer.returncode == 0, answer.stdout + answer.stderr
    found = on(machine, "sh", "-c", "ldconfig -p | grep libcudart.so").stdout
    assert "libcudart.so.1" in found
    installed = on(machine, "dpkg-query", "--show", "--showformat=${Version}", package).stdout
    assert installed.startswith(f"{version}.")
