"""The kernel's side of energy accounting: what is loaded, and what gives nothing."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.loading import load_module

module = load_module("roles/slurm_energy/library/energy_sources.py")


class Node:
    """A machine below a directory; a module of the kernel brings its files when it is loaded."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.check_mode = False
        self.params: dict[str, Any] = {}
        self.brings: dict[str, Path] = {}
        self.loaded: list[str] = []
        self.result: dict[str, Any] = {}

    def run_command(self, command: list[str]) -> tuple[int, str, str]:
        name = command[-1]
        self.loaded.append(name)
        if name in self.brings:
            self.brings[name].parent.mkdir(parents=True, exist_ok=True)
            self.brings[name].touch()
        return (0, "", "") if name in self.brings else (1, "", "not found")

    def exit_json(self, **result: Any) -> None:  # noqa: ANN401
        self.result = result
        raise SystemExit

    def bring(self, *sources: str) -> dict[str, Any]:
        self.params = {"sources": [*sources]}
        with pytest.raises(SystemExit):
            module.bring(self, self.root)
        return self.result

    def has_counters(self, unit: int, number: int = 0) -> Path:
        """Registers of a processor, as Linux shows them: at the offset of a register its eight bytes."""
        place = self.root / f"dev/cpu/{number}/msr"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(bytes(0x606) + unit.to_bytes(8, "little"))
        return place


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    def keep(given: Node, path: Path, text: str) -> bool:
        differs = not path.exists() or path.read_text() != text
        if differs and not given.check_mode:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return differs

    monkeypatch.setattr(module, "keep", keep)
    return Node(tmp_path)


FILE = "etc/modules-load.d/deploy-energy.conf"


def test_counters_that_are_there_are_loaded_at_each_boot(node: Node) -> None:
    node.has_counters(0xA0E03)
    result = node.bring("rapl")
    assert (result["changed"], result["deploy_pending"], node.loaded) == (True, [], [])
    assert (node.root / FILE).read_text().splitlines()[1:] == ["msr"]
    assert node.bring("rapl")["changed"] is False


@pytest.mark.parametrize("unit", [0, None])
def test_a_machine_without_counters_is_named_and_nothing_fails(node: Node, unit: int | None) -> None:
    if unit is not None:
        node.has_counters(unit)
    (pending,) = node.bring("rapl")["deploy_pending"]
    assert pending.startswith("energy by rapl stays empty: ")
    assert ("no such registers" in pending) == (unit is not None)
    assert node.loaded == ["msr"]


def test_registers_that_cannot_be_read_are_named(node: Node) -> None:
    node.has_counters(0xA0E03).unlink()
    (node.root / "dev/cpu/0/msr").mkdir()
    (pending,) = node.bring("rapl")["deploy_pending"]
    assert "as in a virtual machine, or AMD's" in pending


def test_a_controller_of_the_mainboard_is_there_once_its_modules_are(node: Node) -> None:
    node.brings = {"ipmi_devintf": node.root / "dev/ipmi0"}
    assert node.bring("ipmi")["deploy_pending"] == []
    assert node.loaded == ["ipmi_devintf", "ipmi_si"]
    assert (node.root / FILE).read_text().splitlines()[1:] == ["ipmi_devintf", "ipmi_si"]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("xcc", "there is no /dev/ipmi0"),
        ("pm_counters", "there is no /sys/cray/pm_counters/energy"),
    ],
)
def test_what_is_not_there_is_named(node: Node, source: str, why: str) -> None:
    assert node.bring(source)["deploy_pending"] == [f"energy by {source} stays empty: {why}"]


def test_a_preview_loads_nothing_and_says_nothing_of_what_it_would_load(node: Node) -> None:
    node.check_mode = True
    result = node.bring("rapl")
    assert (result["changed"], result["deploy_pending"], node.loaded) == (True, [], [])
    assert not (node.root / FILE).exists()


def test_what_is_declared_no_more_is_not_loaded_any_more(node: Node) -> None:
    node.has_counters(0xA0E03)
    node.bring("rapl")
    assert node.bring()["changed"]
    assert not (node.root / FILE).exists()
    assert node.bring("gpu")["changed"] is False
