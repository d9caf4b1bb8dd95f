"""DCGM is of the wanted version, and its daemon runs."""

from molecule.conftest import Converge, On


def packages(on: On, machine: str) -> list[str]:
    """DCGM's packages with their versions."""
    shown = on(machine, "dpkg-query", "--show", "--showformat=${Package}=${Version}\\n", "datacenter-gpu-*")
    return [line.removeprefix("datacenter-gpu-manager-4-") for line in shown.stdout.split()]


def test_it_is_of_the_version_though_there_is_a_later_one(on: On, machine: str) -> None:
    assert packages(on, machine) == ["core=1:4.4.2-1", "cuda12=1:4.4.2-1"]


def test_a_driver_brings_the_diagnostics_for_its_cuda(on: On, converge: Converge, machine: str) -> None:
    on(machine, "touch", "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.95.05")
    answer = converge(only=machine)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert packages(on, machine) == ["core=1:4.4.2-1", "cuda12=1:4.4.2-1", "cuda13=1:4.4.2-1"]


def test_the_daemon_runs_and_starts_with_the_machine(on: On, machine: str) -> None:
    assert on(machine, "systemctl", "is-active", "nvidia-dcgm").stdout == "active\n"
    assert on(machine, "systemctl", "is-enabled", "nvidia-dcgm").stdout == "enabled\n"
