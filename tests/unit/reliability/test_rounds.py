"""Faults come in turns, and each round counts when its last job has ended, whatever comes after it."""

import json
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.campaign import Campaign
from tests.reliability import __main__ as reliability
from tests.reliability.faults import FAULTS, turns

Fight = Callable[..., dict[str, int]]


class ToyRound:
    """Its jobs end while the second fault after it is there."""

    interrupts = ""
    prepared: tuple[str, ...] = ()

    def __init__(self, _cluster: object, key: str, _chance: object, number: int, _say: object) -> None:
        self.key, self.number, self.name, self.looks = key, number, f"{key}-{number}", 0
        self.load = self.name

    def disturb(self) -> None:
        assert self.load in self.prepared
        if self.name == self.interrupts:
            raise KeyboardInterrupt

    def is_told(self) -> bool:
        self.looks += 1
        return self.looks > 2

    def count(self, _seconds: float) -> dict[str, Any]:
        return {}


@pytest.fixture
def fight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fight:
    """Has a campaign fight; says how many rounds of each fault were kept."""
    file = tmp_path / "figures.json"
    monkeypatch.setattr(reliability, "Round", ToyRound)
    monkeypatch.setattr(reliability, "prepare", lambda _, loads: setattr(ToyRound, "prepared", tuple(loads)))

    def fight(
        *, only: list[str], times: int = 1, interrupts: str = "", apart: bool = False
    ) -> dict[str, int]:
        monkeypatch.setattr(ToyRound, "interrupts", interrupts)
        campaign = Campaign(reliability._PROGRAM, 7, tmp_path, file)
        try:
            options = Namespace(only=only, times=times, minutes=None, apart=apart)
            reliability._Rounds(None, campaign).fight(options)  # type: ignore[arg-type]
        except KeyboardInterrupt:
            assert interrupts
        kept = json.loads(file.read_text()) if file.exists() else {}
        return {key: len(part["rounds"]) for key, part in kept.items()}

    return fight


def test_each_turn_has_every_fault_once_and_ends_with_those_that_let_slurmctld_run() -> None:
    keys = [*FAULTS]
    order = list(turns(7, keys, 2))
    for number in range(2):
        turn = [key for place, key in order if place == number]
        assert sorted(turn) == sorted(keys)
        spared = [FAULTS[key].spares_slurmctld for key in turn]
        assert spared == sorted(spared)
    assert order == list(turns(7, keys, 2))
    assert order != list(turns(8, keys, 2))


@pytest.mark.parametrize("apart", [False, True])
def test_every_round_counts(fight: Fight, *, apart: bool) -> None:
    assert fight(only=[*FAULTS], times=2, apart=apart) == dict.fromkeys(FAULTS, 2)


def test_an_interruption_keeps_the_rounds_whose_jobs_had_ended(
    fight: Fight, capsys: pytest.CaptureFixture[str]
) -> None:
    only = ["standby-cut", "disk-full", "state-full"]
    *_, (number, last) = turns(7, only, 2)
    kept = fight(only=only, times=2, interrupts=f"{last}-{number}")
    assert sum(kept.values()) == 4
    assert "not counted, as jobs of theirs have not ended" in capsys.readouterr().err
