"""How a run is shown on standard output."""

import sys
from enum import StrEnum

from rich.console import Console

from deploy.cli.options import Options
from deploy.show.display import Display
from deploy.show.jsonl import JsonlDisplay
from deploy.show.live import LiveDisplay
from deploy.show.plain import PlainDisplay


class Output(StrEnum):
    """How a run is shown."""

    LIVE = "live"
    PLAIN = "plain"
    JSONL = "jsonl"


def choose_display(output: Output | None, options: Options) -> Display:
    """The display that was asked for, else a live one on a terminal and plain lines elsewhere."""
    match output or (Output.LIVE if sys.stdout.isatty() else Output.PLAIN):
        case Output.LIVE:
            return LiveDisplay(Console(), verbose=bool(options.verbose), diff=options.diff)
        case Output.PLAIN:
            return PlainDisplay(_print, verbose=bool(options.verbose), diff=options.diff)
        case Output.JSONL:
            return JsonlDisplay(_print)


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - standard output is where a run is shown
