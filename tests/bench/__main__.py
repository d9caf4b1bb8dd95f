"""`make bench`: how long deploy takes, as ratios to what it could take, all measured in this one run."""

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench import machine
from tests.bench.campaign import Campaign, Sizes
from tests.bench.commands import BenchError
from tests.bench.figures import Measured, Part, by_part, seconds_of, tables
from tests.command_line import positive, say

_INTERRUPTED = 130
_FIRST_DEPLOYMENT_NODES = 3


def main() -> int:
    """Exit code 0 when everything worked, whatever the figures are."""
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # cleans up like Ctrl-C
    description = machine.describe()
    sizes = Sizes(options.nodes, min(options.nodes, _FIRST_DEPLOYMENT_NODES), options.release)
    description["labs"] = (
        f"{sizes.release}, one controller, one login node and {sizes.rerun} nodes for the reruns,"
        f" {sizes.first} for the first deployment; rounds: {options.rounds}"
    )
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        campaign = Campaign(sizes, options.rounds, f"bench-{os.getpid()}", Path(place), say)
        try:
            if options.against:
                campaign.against(options.against)
            else:
                campaign.run(options.only or tuple(Part))
        except BenchError as problem:
            say(f"bench: {problem}")
            return 1
        except KeyboardInterrupt:
            say("bench: interrupted; its machines are gone")
            return _INTERRUPTED
    figures = {measured: campaign.seconds[measured] for measured in Measured if measured in campaign.seconds}
    lines = [f"{name:<10}{text}" for name, text in description.items()]
    sys.stdout.write("\n".join([*lines, "", *tables(figures, campaign.without, campaign.costs), ""]))
    if options.json:
        when = datetime.now(UTC).isoformat(timespec="seconds")
        parts: dict[str, Mapping[str, Any]] = dict(by_part(figures))
        if campaign.without:
            parts[Part.ABLATION] = campaign.without
        if campaign.costs:
            parts["against"] = {what: seconds_of(costs) for what, costs in campaign.costs.items()}
        _update(options.json, parts, {"measured": when, **description})
    return 0


def _update(file: Path, parts: Mapping[str, Mapping[str, Any]], description: Mapping[str, str]) -> None:
    """Put the parts of this run into a file, and leave the others there."""
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    new = {part: {**description, "seconds": seconds} for part, seconds in parts.items()}
    file.write_text(json.dumps({**kept, **new}, indent=1) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--rounds", type=positive, default=3, help="measurements of each kind (3)")
    parser.add_argument("--nodes", type=positive, default=10, help="compute nodes of the reruns (10)")
    only = "measure this part only; can be given several times"
    parser.add_argument("--only", action="append", type=Part, choices=[*Part], help=only)
    against = "measure this version beside that of another commit, and nothing else"
    parser.add_argument("--against", metavar="COMMIT", help=against)
    parser.add_argument("--release", default="trixie", help="the machines' Debian release (trixie)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures here, too, by part")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
