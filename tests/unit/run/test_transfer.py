"""Programs that data goes to and comes from, run here instead of over ssh."""

import sys
from pathlib import Path

import pytest

from deploy.run import transfer as module
from deploy.run.sent_program import program
from deploy.run.ssh import Login
from deploy.run.transfer import TransferError, transfer
from deploy.site.inventory import Host

HOST = Host("ctl1", {}, frozenset())
_FIRST = '"""Its strings have {braces} and \'quotes\'."""\n\ndef twice(content):\n    return content * 2\n'
_SECOND = """\
from __future__ import annotations

import sys

from first import twice


def main(verb, arguments):
    if verb == "fail":
        sys.stderr.write("some line\\nthe disk is full\\n")
        sys.exit(1)
    sys.stdout.buffer.write(twice(sys.stdin.buffer.read()) + arguments["end"].encode())
"""


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    def command(_host: Host, _login: Login, options: tuple[str, ...]) -> list[str]:
        return [sys.executable, *options]

    monkeypatch.setattr(module, "command", command)


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, Path]:
    files = {"first": tmp_path / "a.py", "second": tmp_path / "b.py"}
    files["first"].write_text(_FIRST)
    files["second"].write_text(_SECOND)
    return files


def test_what_follows_the_program_is_its_data(sources: dict[str, Path]) -> None:
    with transfer(HOST, Login(), program(sources, "go", {"end": "'!"})) as run:
        assert run.stdin
        assert run.stdout
        run.stdin.write(b"\x00data")
        run.stdin.close()
        assert run.stdout.read() == b"\x00data\x00data'!"


def test_a_program_that_fails_says_why_with_its_last_line(sources: dict[str, Path]) -> None:
    def send() -> None:
        with transfer(HOST, Login(), program(sources, "fail", {})) as run:
            assert run.stdin
            for _ in range(1000):
                run.stdin.write(b"x" * 100_000)

    with pytest.raises(TransferError, match=r"^the disk is full$"):
        send()


def test_nothing_runs_on_where_the_data_could_not_be_read(sources: dict[str, Path]) -> None:
    runs = []

    def send() -> None:
        with transfer(HOST, Login(), program(sources, "go", {"end": ""})) as run:
            runs.append(run)
            message = "it changed while it was read"
            raise ValueError(message)

    with pytest.raises(ValueError, match="changed"):
        send()
    assert runs[0].returncode not in {None, 0}
