import subprocess
from pathlib import Path

import pytest

from deploy.lab import bridge


def _told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, route: str) -> list[list[str]]:
    """The commands that would change an interface, where podman1 is a bridge and eth0 is none."""
    told: list[list[str]] = []
    (tmp_path / "podman1/bridge").mkdir(parents=True)
    (tmp_path / "eth0").mkdir()

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        if "route" not in command:
            told.append(command)
        return subprocess.CompletedProcess(command, 0, route, "")

    monkeypatch.setattr(bridge, "podman", lambda *_: "10.213.7.2 ")
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(bridge, "_INTERFACES", tmp_path)
    bridge.keep_address("lab-node1")
    return told


def test_a_bridge_gets_an_address_that_no_machine_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    route = '[{"dst": "10.213.7.2", "dev": "podman1", "prefsrc": "10.213.7.1"}]'
    (told,) = _told(monkeypatch, tmp_path, route=route)
    assert told == ["ip", "link", "set", "dev", "podman1", "address", "02:de:0a:d5:07:01"]


@pytest.mark.parametrize(
    "route",
    [
        '[{"dst": "10.213.7.2", "gateway": "192.0.2.1", "dev": "eth0", "prefsrc": "192.0.2.9"}]',
        '[{"dst": "10.213.7.2", "dev": "eth0", "prefsrc": "192.0.2.9"}]',
        "",
    ],
)
def test_no_interface_of_this_host_is_touched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, route: str
) -> None:
    assert _told(monkeypatch, tmp_path, route=route) == []
