"""The mode is as declared, at once and after what a boot forgets; a hand's change is put right."""

from molecule.conftest import Converge, On

UNIT = "deploy-gpu-modes.service"
ASK = ("nvidia-smi", "--query-gpu=compute_mode", "--format=csv,noheader")


def modes(on: On, machine: str) -> set[str]:
    return set(on(machine, *ASK).stdout.split())


def test_it_is_set_now_and_at_every_boot(on: On, machine: str) -> None:
    assert modes(on, machine) == {"Exclusive_Process"}
    on(machine, "rm", "/run/stand-in-mode")
    assert on(machine, "systemctl", "is-enabled", UNIT).stdout.strip() == "enabled"
    on(machine, "systemctl", "restart", UNIT)
    assert modes(on, machine) == {"Exclusive_Process"}
    assert "slurmd.service" in on(machine, "systemctl", "show", "--property=Before", UNIT).stdout


def test_what_a_hand_changed_is_put_right(on: On, converge: Converge, machine: str) -> None:
    on(machine, "nvidia-smi", "--compute-mode=DEFAULT")
    assert converge(only=machine).returncode == 0
    assert modes(on, machine) == {"Exclusive_Process"}


def test_the_other_mode(on: On, converge: Converge, machine: str) -> None:
    assert converge(only=machine, compute="default").returncode == 0
    assert modes(on, machine) == {"Default"}
    assert converge(only=machine).returncode == 0
