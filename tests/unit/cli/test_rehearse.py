"""What a rehearsal comes to: its deployment, the validation of it, and what users type."""

import json
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploy.cli import rehearse
from deploy.engine.trial import Trial
from deploy.errors import ExitCode
from deploy.judge.summary import Summary, summarize
from deploy.judge.user_outcome import Outcome, Verdict
from deploy.lab.pretended import Size
from deploy.site.inventory import Site
from deploy.validate.catalog import CHECKS
from deploy.validate.result import Judged, Validation, failed, passed
from tests.unit.show.runs import ended

GOOD = Judged("munge", "all decode", (passed("ok"),))
BAD = Judged("nodes", "every node is there", (failed("Slurm does not know it", "n1"),))
COMMAND = {"id": "sinfo", "user": "alice", "run": "sinfo", "expect": {}}


def outcome(verdict: Verdict) -> Outcome:
    return Outcome("sinfo", "alice", "sinfo", ("exit 0",), verdict)


class Means:
    """What a rehearsal has besides; nodes pretend when they are asked to."""

    def __init__(self, steps: list[str], commands: list[dict[str, Any]], sizes: list[Size]) -> None:
        self.content = {"commands": commands}
        self.sizes = sizes
        self._steps = steps

    def prepare(self, commands: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**command, "prepared": True} for command in commands]

    def pretend(self, *, with_absent: bool) -> str:
        self._steps.append("pretended, with absent ones" if with_absent else "pretended")
        return "pretended"


class Rehearsal:
    """A rehearsal in which everything but its own steps is told what to come to."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[str] = []
        self.deployment = summarize([ended()], [])
        self.check = GOOD
        self.typed = Verdict.AS_EXPECTED
        self.sizes: list[Size] = []
        self.fits = "at first"
        self.result = place / "result.json"
        self._site = Site(place / "inventory.ini", {}, {})
        monkeypatch.setattr(rehearse, "deploy_cluster", self._deploy)
        monkeypatch.setattr(rehearse, "validate_quickly", self._validate)
        monkeypatch.setattr(rehearse, "type_commands", self._type)
        monkeypatch.setattr(rehearse, "read_site", lambda _: self._site)

    def _deploy(self, *_: object) -> Summary:
        self.steps.append("deployed")
        return self.deployment

    def _validate(self, *_: object, without: Collection[str], **__: object) -> Validation:
        assert {check.name for check in CHECKS} > {*without} == {"speed"}
        self.steps.append("validated")
        return Validation("mine", 0.0, 12.0, (self.check,))

    def _type(self, _site: Site, commands: Iterable[Any], *_: object, **__: object) -> Trial:
        self.steps.append("typed")
        listed = [*commands]
        assert all(command["prepared"] for command in listed)
        if self.fits not in {"at first", self.steps[-2]}:
            large = replace(outcome(Verdict.LEFT_OUT), is_too_large=True)
            return Trial({"at": "now"}, tuple(large for _ in listed))
        return Trial({"at": "now"}, tuple(outcome(self.typed) for _ in listed))

    def perform(self, *commands: dict[str, Any]) -> ExitCode:
        means: Any = Means(self.steps, list(commands), self.sizes)
        return rehearse._perform(
            self._site.inventory, self._site, means, output=None, json_file=self.result, seconds=1
        )


@pytest.fixture
def rehearsal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rehearsal:
    return Rehearsal(tmp_path, monkeypatch)


def test_it_is_validated_before_users_type(rehearsal: Rehearsal) -> None:
    assert rehearsal.perform(COMMAND) is ExitCode.OK
    assert rehearsal.steps == ["deployed", "validated", "typed"]
    result = json.loads(rehearsal.result.read_text())
    assert result["validation"]["checks"][0]["outcome"] == "passed"
    assert [command["id"] for command in result["commands"]] == ["sinfo"]


@pytest.mark.parametrize(
    ("check", "typed"),
    [(BAD, Verdict.AS_EXPECTED), (GOOD, Verdict.DIFFERENT), (BAD, Verdict.DIFFERENT)],
)
def test_the_worst_part_decides(rehearsal: Rehearsal, check: Judged, typed: Verdict) -> None:
    rehearsal.check, rehearsal.typed = check, typed
    assert rehearsal.perform(COMMAND) is ExitCode.FAILED
    assert rehearsal.steps[-1] == "typed"
    result = json.loads(rehearsal.result.read_text())
    assert result["validation"]["exit_code"] == (check is BAD)


def test_a_site_without_commands_is_validated(
    rehearsal: Rehearsal, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rehearsal.perform() is ExitCode.OK
    assert json.loads(rehearsal.result.read_text())["commands"] == []
    assert "command" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("sizes", "steps"),
    [
        ([], []),
        ([Size("big", frozenset({"n1"}), 72, 512000)], ["pretended", "typed"]),
        (
            [Size("big", frozenset({"n1"}), 72, 512000, 80)],
            ["pretended", "typed", "pretended, with absent ones", "typed"],
        ),
    ],
)
def test_what_is_too_large_is_typed_again(sizes: list[Size], steps: list[str], rehearsal: Rehearsal) -> None:
    rehearsal.sizes, rehearsal.fits = sizes, "nothing"
    assert rehearsal.perform(COMMAND) is ExitCode.OK
    assert rehearsal.steps == ["deployed", "validated", "typed", *steps]
    (command,) = json.loads(rehearsal.result.read_text())["commands"]
    assert (command["verdict"], command["here"]) == ("left out", [])


def test_what_was_pretended_is_said(rehearsal: Rehearsal) -> None:
    rehearsal.sizes = [Size("big", frozenset({"n1"}), 72, 512000, 80)]
    rehearsal.fits = "pretended"
    assert rehearsal.perform(COMMAND) is ExitCode.OK
    assert rehearsal.steps == ["deployed", "validated", "typed", "pretended", "typed"]
    (command,) = json.loads(rehearsal.result.read_text())["commands"]
    assert (command["verdict"], command["here"]) == ("as expected", ["pretended"])


def test_what_was_not_deployed_is_not_validated(rehearsal: Rehearsal) -> None:
    rehearsal.deployment = summarize([ended(rc=2)], ["n1"])
    assert rehearsal.perform(COMMAND) is not ExitCode.OK
    assert rehearsal.steps == ["deployed"]
    assert not rehearsal.result.exists()
