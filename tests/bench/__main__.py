"""`make bench`: how long deploy takes, as ratios to what it could take, all measured in this one run."""

import argparse
import json
import os
import signal
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from tests.bench import machine
from tests.bench.campaign import Campaign
from tests.bench.commands import BenchError
from tests.bench.figures import Measured, as_json, table
from tests.bench.lab import Wish

_INTERRUPTED = 130


def main() -> int:
    """Exit code 0 when everything worked, whatever the figures are."""
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # cleans up like Ctrl-C
    description = machine.describe()
    wish = Wish(options.nodes, options.release)
    description["lab"] = f"{wish.nodes + 2} machines, {wish.release}; rounds: {options.rounds}"
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        campaign = Campaign(wish, options.rounds, f"bench-{os.getpid()}", Path(place), _say)
        try:
            campaign.run()
        except BenchError as problem:
            _say(f"bench: {problem}")
            return 1
        except KeyboardInterrupt:
            _say("bench: interrupted; its machines are gone")
            return _INTERRUPTED
    figures = {measured: campaign.seconds[measured] for measured in Measured}
    lines = [f"{name:<10}{text}" for name, text in description.items()]
    sys.stdout.write("\n".join([*lines, "", table(figures), ""]))
    if options.json:
        when = datetime.now(UTC).isoformat(timespec="seconds")
        data = {"measured": when, **description, **as_json(figures), "slowest_tasks": campaign.slowest_tasks}
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--rounds", type=_positive, default=3, help="measurements of each kind (3)")
    parser.add_argument("--nodes", type=_positive, default=2, help="compute nodes (2)")
    parser.add_argument("--release", default="trixie", help="the machines' Debian release (trixie)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here, too")
    return parser.parse_args()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
