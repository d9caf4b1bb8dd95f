"""Users' commands: which are left out, and what is otherwise where machines are containers."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from deploy.engine import trial
from deploy.engine.options import Options
from deploy.engine.trial import Trial, type_commands
from deploy.judge.user_outcome import Outcome, Verdict
from deploy.site.inventory import Host, Site

LOGIN = Host("login", {}, frozenset({"slurm-login"}))
SITE = Site(Path("/sites/mine/inventory.ini"), {"login": LOGIN}, {"slurm-login": ("login",)})
COMMAND = {"id": "one", "user": "alice", "run": "true", "expect": {"output": "^True$"}}
FALSE = {"replaced": "PyTorch for CPUs", "expect": {"output": "^False$"}}
ANSWER = {"exit": 0, "output": "False\n", "jobs": {}, "files": {}, "trouble": ""}


class Typed:
    """A login node on which every command prints ``False``."""

    def __init__(self, *_: object) -> None:
        self.login = None

    def type_commands(
        self, commands: Iterable[dict[str, Any]], on_answer: Callable[[dict[str, Any]], None], _: object
    ) -> None:
        for command in commands:
            on_answer({"id": command["id"], **ANSWER})


def come(command: dict[str, Any], monkeypatch: pytest.MonkeyPatch, *, in_containers: bool = True) -> Outcome:
    monkeypatch.setattr(trial, "Session", Typed)
    done = type_commands(
        SITE, [command], Options(), in_containers=in_containers, seconds=1, tell=lambda _: None
    )
    (outcome,) = done.outcomes
    return outcome


def test_in_containers_another_outcome_is_expected_and_why_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = come({**COMMAND, "in_containers": FALSE}, monkeypatch)
    assert (outcome.verdict, outcome.here) == (Verdict.AS_EXPECTED, ("PyTorch for CPUs",))
    assert outcome.expected == ("exit 0", "output ^False$")


def test_elsewhere_the_guide_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = come({**COMMAND, "in_containers": FALSE}, monkeypatch, in_containers=False)
    assert (outcome.verdict, outcome.here) == (Verdict.DIFFERENT, ())


def test_what_is_replaced_may_come_out_as_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    command = {**COMMAND, "in_containers": {"replaced": "PyTorch for CPUs"}, "expect": {"output": "False"}}
    assert come(command, monkeypatch).verdict is Verdict.AS_EXPECTED


def test_a_password_that_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    wanting = {**COMMAND, "password_file": "password", "expect": {}}
    outcome = come(wanting, monkeypatch)
    assert (outcome.verdict, outcome.why) == (
        Verdict.LEFT_OUT,
        ("only a rehearsal knows a password of alice",),
    )
    assert come({**wanting, "files": {"password": "x"}}, monkeypatch).verdict is Verdict.AS_EXPECTED


def test_what_came_later_takes_its_place_and_says_how() -> None:
    first = Outcome("one", "alice", "true", (), Verdict.LEFT_OUT, is_too_large=True)
    other = Outcome("two", "alice", "true", (), Verdict.AS_EXPECTED)
    begun = Trial({"host": "login"}, (first, other))
    assert begun.too_large == {"one"}
    again = begun.with_later(Trial({}, (first,)), "large nodes")
    assert (again.too_large, again.outcomes[0].here) == (frozenset({"one"}), ())
    good = Outcome("one", "alice", "true", (), Verdict.AS_EXPECTED, here=("an image",))
    done = begun.with_later(Trial({}, (good,)), "large nodes")
    assert (done.too_large, done.outcomes[0].here) == (frozenset(), ("an image", "large nodes"))
    assert (done.outcomes[1], done.about) == (other, {"host": "login"})
