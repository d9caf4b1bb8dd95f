"""What the first of several slurmctld waits for before it starts."""

import struct
import time
from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module

lead = load_module("roles/slurmctld/files/usr/local/lib/slurmctld/ask_for_lead.py")

CONFIGURATION = (
    "ClusterName=c\nSlurmctldHost=ctl1(10.0.0.1)\nSlurmctldHost=ctl2(10.0.0.2)\nSlurmctldHost=ctl3\n"
    "SlurmctldPort=6817\nSlurmctldTimeout=2\nStateSaveLocation={}\n"
)


class World:
    """Controllers that stand as they are told, one step after the other; what was asked of them."""

    def __init__(self, *steps: dict[str, str]) -> None:
        self.steps = list(steps)
        self.addresses = dict.fromkeys(steps[0], "")
        self.told: list[str] = []

    def stand(self, name: str) -> str:
        found = self.steps[0][name]
        if name == [*self.steps[0]][-1] and len(self.steps) > 1:
            self.steps.pop(0)
        return found

    def end(self, name: str) -> None:
        self.told.append(name)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lead, "_PAUSE", 0.01)


@pytest.fixture
def text(tmp_path: Path) -> str:
    return CONFIGURATION.format(tmp_path)


def beats(directory: Path, place: int, when: float | None = None) -> None:
    (directory / "heartbeat").write_bytes(struct.pack(">QQ", int(when or time.time()), place))


def test_controllers_and_their_places_are_those_of_slurm_conf(text: str) -> None:
    assert lead.controllers(text) == {"ctl1": "10.0.0.1", "ctl2": "10.0.0.2", "ctl3": "ctl3"}
    assert lead.controllers(lead.naming(text, "ctl2")) == {"ctl2": "10.0.0.2"}
    assert lead.setting(text, "SlurmctldPort", "1") == "6817"
    assert lead.setting(text, "Other", "1") == "1"


def test_one_that_leads_is_told_once_and_waited_for_until_it_stands_by(text: str) -> None:
    leads, gone, stands = ({"ctl2": how} for how in (lead.LEADS, lead.IS_GONE, lead.STANDS_BY))
    world = World(leads, leads, gone, gone, stands)
    assert lead.wait_for_lead(text, world) == ""
    assert world.told == ["ctl2"]
    assert world.steps == [stands]


def test_one_that_does_not_end_is_named(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lead, "_SECONDS", 0.05)
    assert lead.wait_for_lead(text, World({"ctl2": lead.STANDS_BY, "ctl3": lead.LEADS})) == "ctl3"


def test_one_that_ended_and_is_not_started_again_is_not_waited_for_without_end(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lead, "_SECONDS_TO_END", 0.05)
    assert lead.wait_for_lead(text, World({"ctl2": lead.LEADS}, {"ctl2": lead.IS_GONE})) == ""


def test_nobody_there_is_nobody_in_the_way(text: str) -> None:
    assert lead.wait_for_lead(text, World({"ctl2": lead.SILENT, "ctl3": lead.IS_GONE})) == ""


def test_one_that_is_not_reached_and_writes_is_in_the_way(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = iter(range(10**6))
    monkeypatch.setattr(lead, "_SECONDS", 0.05)
    monkeypatch.setattr(lead, "heartbeat", lambda _: (int(time.time()) + next(moments) % 2, 1))
    assert lead.wait_for_lead(text, World({"ctl2": lead.SILENT})) == "another controller that is not reached"
    monkeypatch.undo()
    monkeypatch.setattr(lead, "_PAUSE", 0.01)
    for place, when in ((1, time.time()), (1, time.time() - 3600), (0, time.time())):
        beats(tmp_path, place, when)
        assert not lead.is_written(text)
    assert lead.heartbeat(str(tmp_path / "none")) is None


def test_only_the_first_of_several_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    file, asked = tmp_path / "slurm.conf", list[str]()
    monkeypatch.setattr(lead, "CONFIGURATION", file)
    monkeypatch.setattr(lead, "wait_for_lead", lambda *_: asked.append("") or "")
    assert lead.main("ctl1") == 0
    for name, lines in (("ctl2", text), ("ctl1", lead.naming(text, "ctl1"))):
        file.write_text(lines)
        assert lead.main(name) == 0
    assert asked == []
    file.write_text(text)
    assert lead.main("ctl1") == 0
    assert asked == [""]
    monkeypatch.setattr(lead, "wait_for_lead", lambda *_: "ctl2")
    assert lead.main("ctl1") == 1
