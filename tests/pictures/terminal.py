"""Draws a terminal in which commands were really typed: ``python -m tests.pictures.terminal --help``.

The commands run one after another in a terminal of their own, in the directory where this is called. What is
on the screen when each has ended is drawn, in the colours that it had; nothing is added or left out.
"""

import argparse
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

import pyte
from pyte.screens import Char
from rich.color import ColorParseError
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import MONOKAI
from rich.text import Text

_LINES = 40
_KEPT = 1000
# Rich's own frame fetches its font from the network; the reader has one.
_FRAME = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main() -> int:
    """Runs the commands and writes the picture; returns the exit code."""
    options = _options()
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=options.columns, file=nowhere, force_terminal=True)
        for number, command in enumerate(options.commands):
            if number:
                console.print()
            console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
            for line in screen(typed(command, options.columns), options.columns):
                console.print(line, no_wrap=True, crop=True)
    drawn = _FRAME.sub("", console.export_svg(title=options.title, theme=MONOKAI))
    options.file.write_text(drawn.replace("Fira Code", "ui-monospace, monospace"), encoding="utf-8")
    sys.stdout.write(f"{options.file}: {options.file.stat().st_size // 1024} KiB\n")
    return 0


def typed(command: str, columns: int) -> bytes:
    """What a command writes to a terminal of so many columns, until it ends, whatever its exit code."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", _LINES, columns, 0, 0))
    # A size that the environment names would count for more than the terminal's own.
    own = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES", "COLORTERM"}}
    with subprocess.Popen(
        ["bash", "-c", command],
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
        env={**own, "TERM": "xterm-256color"},
    ):
        os.close(its)
        written = b"".join(_read(ours))
    os.close(ours)
    return written


def _read(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # nobody has it open any more
            return
        if not part:
            return
        yield part


def screen(written: bytes, columns: int) -> list[Text]:
    """The lines that a terminal shows after this was written to it, those that scrolled away included."""
    shown = pyte.HistoryScreen(columns, _LINES, history=_KEPT)
    pyte.ByteStream(shown).feed(written)
    rows = [*shown.history.top, *(shown.buffer[number] for number in range(_LINES))]
    lines = [_line(row, columns) for row in rows]
    while lines and not lines[-1].plain:
        lines.pop()
    return lines


def _line(row: Mapping[int, Char], columns: int) -> Text:
    line = Text()
    for style, characters in groupby((row[column] for column in range(columns)), _style):
        line.append("".join(character.data for character in characters), style)
    line.rstrip()
    return line


def _style(character: Char) -> Style:
    return Style(
        color=_colour(character.fg),
        bold=character.bold,
        italic=character.italics,
        reverse=character.reverse,
    )


def _colour(name: str) -> str | None:
    """Rich's name for a colour of pyte's: a word, or six hexadecimal digits."""
    if name == "default":
        return None
    name = {"brown": "yellow", "brightblack": "bright_black"}.get(name, name)
    try:
        Style(color=name)
    except ColorParseError:
        return f"#{name}"
    return name


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.pictures.terminal", description=__doc__)
    parser.add_argument("file", type=Path, help="the picture to write")
    parser.add_argument("commands", nargs="+", help="what is typed, each a line for a shell")
    parser.add_argument("--title", default="deploy", help="what the window is called")
    parser.add_argument("--columns", type=int, default=110, help="width of the terminal")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
