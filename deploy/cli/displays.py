"""How a run is shown on standard output."""

import sys
from enum import StrEnum

from deploy.engine.display import Display
from deploy.engine.options import Options
from deploy.show.jsonl import JsonlDisplay
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
            return _live(options)
        case Output.PLAIN:
            return PlainDisplay(_print, verbose=bool(options.verbose), diff=options.diff)
        case Output.JSONL:
            return JsonlDisplay(_print)


def _live(options: Options) -> Display:
    # Rich costs a tenth of the start, and only a terminal needs it.
    from rich.console import Console  # noqa: PLC0415

    from deploy.show.live import LiveDisplay  # noqa: PLC0415

    return LiveDisplay(Console(), verbose=bool(options.verbose), diff=options.diff)


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - standard output is where a run is shown
