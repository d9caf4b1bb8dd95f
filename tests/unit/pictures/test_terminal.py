from pathlib import Path

import pytest

from tests.pictures import terminal

_COLUMNS = 40


def _plain(written: bytes) -> list[str]:
    return [line.plain for line in terminal.screen(written, _COLUMNS)]


def test_what_was_overwritten_is_not_shown() -> None:
    assert _plain(b"working\r\x1b[2Kdone\r\n") == ["done"]


def test_lines_that_scrolled_away_are_kept() -> None:
    lines = [f"line {number}" for number in range(100)]
    assert _plain("".join(f"{line}\r\n" for line in lines).encode()) == lines


def test_long_lines_are_broken_at_the_edge() -> None:
    assert _plain(b"x" * (_COLUMNS + 1)) == ["x" * _COLUMNS, "x"]


def test_colours_are_kept() -> None:
    (line,) = terminal.screen(
        b"\x1b[1;32mgood\x1b[0m \x1b[33mso so\x1b[0m \x1b[38;2;1;2;3mown\x1b[0m", _COLUMNS
    )
    seen = {line.plain[span.start : span.end]: str(span.style) for span in line.spans}
    assert seen["good"] == "bold not italic not reverse green"
    assert seen["so so"].endswith("yellow")
    assert seen["own"].endswith("#010203")


def test_a_command_is_typed_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert _plain(terminal.typed("tput cols; test -t 1 && echo terminal; exit 3", _COLUMNS)) == [
        "40",
        "terminal",
    ]


def test_the_picture_fetches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = tmp_path / "run.svg"
    monkeypatch.setattr("sys.argv", ["terminal", str(picture), "echo one", "echo two"])
    assert terminal.main() == 0
    drawn = picture.read_text(encoding="utf-8")
    assert "one" in drawn
    assert "two" in drawn
    assert "url(http" not in drawn
    assert "font-face" not in drawn
