"""What runs in the portal's job: it ends when the hub has forgotten it, and not because that is away."""

import http.client
import subprocess
import sys
import urllib.error
from email.message import Message

import pytest

from tests.unit.roles.loading import load_module

start_server = load_module("roles/jupyter_server/files/start_server.py")


def answer(code: int) -> Exception:
    return urllib.error.HTTPError("https://login1:8081/hub/api/user", code, "", Message(), None)


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (None, False),
        (answer(403), True),
        (answer(401), True),
        (answer(500), False),
        (answer(503), False),
        (urllib.error.URLError("refused"), False),
        (TimeoutError(), False),
        (http.client.BadStatusLine("x"), False),
    ],
)
def test_only_a_hub_that_says_so_has_forgotten_it(
    monkeypatch: pytest.MonkeyPatch, problem: Exception | None, *, expected: bool
) -> None:
    def ask_hub(path: str) -> None:
        assert path == "user"
        if problem:
            raise problem

    monkeypatch.setattr(start_server, "ask_hub", ask_hub)
    assert start_server.is_forgotten() is expected


def waited(monkeypatch: pytest.MonkeyPatch, said: list[bool], seconds: float) -> int:
    """The exit code of a server that would run that long, while the hub says this."""
    told = iter(said)
    monkeypatch.setattr(start_server, "_SECONDS_BETWEEN", 0.05)
    monkeypatch.setattr(start_server, "is_forgotten", lambda: next(told, False))
    with subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({seconds})"]) as server:
        code: int = start_server.wait_for(server)
    return code


def test_it_ends_when_it_is_forgotten_twice_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, [False, True, False, True, True], 600) == -15


def test_one_answer_in_between_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, [True, False, True, False], 1) == 0
