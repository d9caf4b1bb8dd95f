import sys

import pytest
import typer

from deploy.cli import consent


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "prompt", lambda *_, **__: answer)


def test_without_a_terminal_nobody_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_terminal(monkeypatch, "yes")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    assert not consent.ask_to_go_on()


@pytest.mark.parametrize("answer", ["no", "", "y", "yess"])
def test_anything_but_yes_is_a_no(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    on_a_terminal(monkeypatch, answer)
    assert not consent.ask_to_go_on()


def test_yes_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_terminal(monkeypatch, "Yes")
    assert consent.ask_to_go_on()
