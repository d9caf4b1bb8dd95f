"""Rounds are kept after each, beside or in the place of those of before; an interruption is told."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.campaign import Campaign, Program, chance_of, fought, options_of


def _is_bad(one: Mapping[str, Any]) -> bool:
    return bool(one["troubles"])


_PROGRAM = Program(
    "toy", {"a": "one", "b": "another"}, "a machine", ("what", "rounds"), lambda parts: [(*parts,)], _is_bad
)


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("signal.signal", lambda *_: None)


@pytest.mark.parametrize(
    ("adds", "what", "rounds", "seeds"),
    [
        (False, "another", 1, ["seed 7"]),
        (True, "another", 3, ["seed 5", "seed 6", "seed 7"]),
        (True, "something else", 1, ["seed 7"]),
    ],
)
def test_each_round_is_kept_at_once_and_other_kinds_stay(
    tmp_path: Path, what: str, rounds: int, seeds: list[str], *, adds: bool
) -> None:
    file = tmp_path / "toy.json"
    for seed in (5, 6):
        Campaign(_PROGRAM, seed, tmp_path, file, adds=True).keep("b", {"troubles": []})
    earlier = json.loads(file.read_text())
    file.write_text(json.dumps({"b": {**earlier["b"], "what": what}, "c": {"rounds": []}}))
    campaign = Campaign(_PROGRAM, 7, tmp_path, file, adds)
    campaign.keep("b", {"troubles": []})
    kind = json.loads(file.read_text())["b"]
    assert len(kind["rounds"]) == rounds
    labs = [one["labs"] for one in (*kind.get("before", ()), kind)]
    assert [lab.removeprefix("a machine; ") for lab in labs] == seeds
    campaign.keep("a", {"troubles": []})
    kept = json.loads(file.read_text())
    assert list(kept) == ["a", "b"]
    assert (len(kept["b"]["rounds"]), kept["a"]["what"]) == (rounds, "one")
    assert kept["a"]["labs"].endswith("seed 7")


def test_an_interruption_leaves_the_figures_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "toy.json"
    campaign = Campaign(_PROGRAM, 7, tmp_path, file)
    campaign.keep("a", {"troubles": []})
    before = file.read_text()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        campaign.keep("a", {"troubles": []})
    assert file.read_text() == before


def test_campaigns_of_the_same_code_add_up_and_each_is_named(tmp_path: Path) -> None:
    (tmp_path / "role").mkdir()
    code = tmp_path / "role" / "task.yml"
    code.write_text("a")
    program, file = replace(_PROGRAM, code=[str(tmp_path / "role")]), tmp_path / "toy.json"

    def kept(seed: int, rounds: int = 1) -> dict[str, Any]:
        campaign = Campaign(program, seed, tmp_path, file, adds=True)
        for _ in range(rounds):
            campaign.keep("a", {"troubles": []})
        part: dict[str, Any] = json.loads(file.read_text())["a"]
        return part

    assert "before" not in kept(1)
    (tmp_path / "role" / "README.md").write_text("more words")
    kept(2, rounds=2)
    part = kept(3)
    assert len(part["rounds"]) == 4
    assert [(one["labs"], one["rounds"]) for one in part["before"]] == [
        ("a machine; seed 1", 1),
        ("a machine; seed 2", 2),
    ]
    code.write_text("b")
    part = kept(4)
    assert (len(part["rounds"]), "before" in part) == (1, False)


def test_a_round_has_its_own_chance_by_the_seed() -> None:
    assert chance_of(7, "a", 1).random() == chance_of(7, "a", 1).random()
    assert len({chance_of(*what).random() for what in ((7, "a", 1), (7, "a", 2), (8, "a", 1))}) == 3


@pytest.mark.parametrize(("troubles", "code"), [([], 0), (["x"], 1)])
def test_what_a_round_found_is_the_exit_code(
    capsys: pytest.CaptureFixture[str], troubles: list[str], code: int
) -> None:
    options = options_of(_PROGRAM).parse_args(["--seed", "7"])
    assert fought(_PROGRAM, options, lambda campaign: campaign.keep("a", {"troubles": troubles})) == code
    assert capsys.readouterr().out == "what | rounds\na\n"


@pytest.mark.parametrize(("lab", "machines"), [([], "are gone"), (["--lab", "mine"], "stay")])
def test_an_interruption_ends_it_with_its_own_code(
    capsys: pytest.CaptureFixture[str], lab: list[str], machines: str
) -> None:
    places = []

    def fight(campaign: Campaign) -> None:
        places.append(campaign.place)
        raise KeyboardInterrupt

    assert fought(_PROGRAM, options_of(_PROGRAM).parse_args(lab), fight) == 130
    assert f"toy: interrupted; its machines {machines}\n" in capsys.readouterr().err
    assert not places[0].exists()
