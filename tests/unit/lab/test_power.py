"""A machine that loses its power says nothing to others, not even by the kernel a container leaves behind."""

from dataclasses import replace

import pytest

from deploy.lab import power
from deploy.lab.machines import containers
from tests.unit.lab.test_labs import lab_of


@pytest.mark.parametrize(("machines", "cuts"), [("containers", True), ("uml", False)])
def test_the_network_goes_before_the_machine(
    machines: str, *, cuts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    lab = replace(lab_of(("node1", "running")), machines=machines)
    monkeypatch.setattr(power, "inspect_machine", lambda: None)
    monkeypatch.setattr(power, "need_lab", lambda _name: lab)
    monkeypatch.setattr(power, "podman", lambda *words: asked.append(words))
    monkeypatch.setattr(containers, "succeeds", lambda *words: asked.append(words))
    power.power_off("two", "node1")
    stop = ("stop", "--time", "0", "deploy-two-node1")
    cut = ("exec", "deploy-two-node1", "ip", "link", "set", "dev", "eth0", "down")
    assert asked == ([cut, stop] if cuts else [stop])
