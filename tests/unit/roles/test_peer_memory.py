"""nvidia-peermem where the kernel's RDMA drivers take it; elsewhere GPUs' memory is reached without it."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.loading import load_module

peer_memory = load_module("roles/rdma/library/peer_memory.py")

CARD, DRIVER = "sys/class/infiniband/mlx5_0", "proc/driver/nvidia/version"
FILE = "etc/modules-load.d/deploy-nvidia-peermem.conf"
UPSTREAM = "0000000000000000 T ib_register_device\t[ib_core]\n0000000000000000 t _text\n"
DOCA = f"{UPSTREAM}0000000000000000 T ib_register_peer_memory_client\t[ib_core]\n"


class Machine:
    """An AnsibleModule on a machine whose modprobe answers so."""

    def __init__(self, root: Path, code: int = 0, said: str = "") -> None:
        self.root, self.code, self.said = root, code, said
        self.check_mode = False
        self.loads: list[str] = []

    def run_command(self, command: list[str]) -> tuple[int, str, str]:
        assert command[0] == "modprobe"
        self.loads.append(command[-1])
        if self.code == 0:
            (self.root / "sys/module/nvidia_peermem").mkdir(parents=True)
        return self.code, "", self.said

    def exit_json(self, **result: Any) -> None:  # noqa: ANN401
        self.result = result
        raise SystemExit

    def bring(self) -> dict[str, Any]:
        with pytest.raises(SystemExit):
            peer_memory.bring(self, self.root)
        return self.result


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    def keep(given: Machine, path: Path, text: str) -> bool:
        differs = not path.exists() or path.read_text() != text
        if differs and not given.check_mode:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return differs

    monkeypatch.setattr(peer_memory, "keep", keep)
    for name in (CARD, DRIVER):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "proc/kallsyms").write_text(DOCA)
    return Machine(tmp_path)


@pytest.mark.parametrize("missing", [CARD, DRIVER, "sys/class/infiniband"])
def test_it_is_for_a_machine_that_has_both(machine: Machine, missing: str) -> None:
    (machine.root / CARD).rmdir()
    if missing == "sys/class/infiniband":
        (machine.root / missing).rmdir()
    elif missing == DRIVER:
        (machine.root / CARD).mkdir()
        (machine.root / DRIVER).rmdir()
    assert machine.bring() == {"changed": False, "deploy_pending": [], "deploy_manages": {}}
    assert machine.loads == []


def test_it_is_loaded_where_rdma_drivers_take_it(machine: Machine) -> None:
    assert machine.bring()["changed"] is True
    assert (machine.root / FILE).read_text().splitlines()[1:] == ["nvidia-peermem"]
    assert machine.result["deploy_manages"]["modules"] == ["nvidia_peermem"]
    again = machine.bring()
    assert (again["changed"], machine.loads) == (False, ["nvidia-peermem"])


@pytest.mark.parametrize("symbols", [UPSTREAM, "", "0 T not_ib_register_peer_memory_client\t[x]\n"])
def test_the_kernels_own_rdma_drivers_do_without_it(machine: Machine, symbols: str) -> None:
    """There it answers "Invalid argument", and jobs reach the memory by DMA-BUF."""
    (machine.root / "proc/kallsyms").write_text(symbols)
    machine.code, machine.said = 1, "modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument"
    assert machine.bring() == {"changed": False, "deploy_pending": [], "deploy_manages": {}}
    assert machine.loads == []


def test_what_it_left_goes_where_the_kernel_does_not_take_it_any_more(machine: Machine) -> None:
    machine.bring()
    (machine.root / "sys/module/nvidia_peermem").rmdir()
    (machine.root / "proc/kallsyms").write_text(UPSTREAM)
    machine.check_mode = True
    assert machine.bring()["changed"] is True
    assert (machine.root / FILE).exists()
    machine.check_mode = False
    assert machine.bring()["changed"] is True
    assert not (machine.root / FILE).exists()
    assert machine.bring()["changed"] is False


def test_a_module_that_was_built_for_other_drivers_is_named_and_the_host_goes_on(machine: Machine) -> None:
    machine.code, machine.said = 1, "modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument\n"
    (pending,) = machine.bring()["deploy_pending"]
    assert "Invalid argument" in pending
    assert "before those RDMA drivers" in pending
    assert not (machine.root / FILE).exists()
    assert machine.result["changed"] is False


def test_a_preview_loads_nothing(machine: Machine) -> None:
    machine.check_mode = True
    result = machine.bring()
    assert (result["changed"], machine.loads, (machine.root / FILE).exists()) == (True, [], False)
