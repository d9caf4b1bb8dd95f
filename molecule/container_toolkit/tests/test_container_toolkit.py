"""Container runtimes find the list of GPUs, and all parts of the toolkit are of the wanted version."""

from molecule.conftest import On


def test_all_parts_are_of_the_version_though_there_is_a_later_one(on: On, machine: str) -> None:
    shown = on(machine, "dpkg-query", "--show", "--showformat=${Version}\n", "*nvidia-container*").stdout
    assert shown.split() == ["1.18.1-1"] * 4


def test_an_upgrade_leaves_them_alone(on: On, machine: str) -> None:
    assert "nvidia-container" not in on(machine, "apt-get", "--simulate", "dist-upgrade").stdout


def test_the_list_of_gpus_is_there_and_written_at_every_boot(on: On, machine: str) -> None:
    assert on(machine, "cat", "/run/cdi/nvidia.yaml").stdout == "cdi generate --output=/run/cdi/nvidia.yaml\n"
    assert on(machine, "systemctl", "is-enabled", "deploy-nvidia-cdi").stdout == "enabled\n"
    order = on(machine, "systemctl", "show", "--property=Before", "--value", "deploy-nvidia-cdi").stdout
    assert "slurmd.service" in order.split()
