"""`make reliability`: faults of controllers, database, network and storage under load, and what they cost."""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deploy.lab.state import need_lab
from tests.bench import machine
from tests.cluster.lab_cluster import Cluster
from tests.command_line import positive, say
from tests.reliability.faults import FAULTS, SHORT
from tests.reliability.figures import HEAD, lost_though_saved, table
from tests.reliability.lab import deployed_lab
from tests.reliability.rounds import RUNNING, Round, chance_of

_INTERRUPTED = 130
_TIMES = 5


def main() -> int:
    """Exit code 0 when nothing that was saved is lost, nothing ran twice and nothing was done by hand."""
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # cleans up like Ctrl-C
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    chosen = options.only or ([*SHORT] if options.short else [*FAULTS])
    say(f"seed {seed}; faults: {', '.join(chosen)}; each {options.times} times")
    description = {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        **machine.describe(),
        "labs": f"two controllers, a host of the database, two nodes; {RUNNING} jobs that run, a submission"
        f" and a question a second; seed {seed}",
    }
    os.environ.setdefault("XDG_STATE_HOME", tempfile.mkdtemp(prefix="reliability-state-"))
    try:
        if options.lab:
            cluster = Cluster(options.lab, need_lab(options.lab).directory, "trixie")
            parts = _all(cluster, chosen, options, seed, description)
        else:
            with (
                tempfile.TemporaryDirectory(prefix="reliability-") as place,
                deployed_lab(f"test-reliability-{os.getpid()}", Path(place)) as cluster,
            ):
                parts = _all(cluster, chosen, options, seed, description)
    except KeyboardInterrupt:
        say("reliability: interrupted; its machines are gone")
        return _INTERRUPTED
    for line in (HEAD, *table(parts)):
        sys.stdout.write(" | ".join(line) + "\n")
    return int(any(_is_fault(one) for part in parts.values() for one in part["rounds"]))


def _all(
    cluster: Cluster,
    chosen: list[str],
    options: argparse.Namespace,
    seed: int,
    description: Mapping[str, str],
) -> dict[str, Any]:
    """All rounds; what is known is kept after each, should a later one not end."""
    parts: dict[str, Any] = {}
    later: list[Round] = []

    def counted(one: Round) -> None:
        part = parts.setdefault(one.key, {"what": one.fault.what, **description, "rounds": []})
        part["rounds"].append(one.count())
        say(f"  {json.dumps(part['rounds'][-1])}")
        if options.json:
            _update(options.json, parts)

    try:
        for key, number in ((key, number) for key in chosen for number in range(options.times)):
            say(f"{key}, {number + 1} of {options.times}")
            one = Round(cluster, key, chance_of(seed, key, number), number, say)
            one.disturb()
            if options.together:
                later.append(one)
            else:
                counted(one)
    finally:
        for one in later:
            counted(one)
    return parts


def _is_fault(found: Mapping[str, Any]) -> bool:
    return bool(lost_though_saved(found) or found["twice"] or found["at_once"] or found["by_hand"])


def _update(file: Path, parts: Mapping[str, Any]) -> None:
    """Put these faults into a file, and leave the others there; in the order of the table."""
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    all_of_them = {**kept, **parts}
    ordered = {key: all_of_them[key] for key in FAULTS if key in all_of_them}
    file.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.reliability", description=__doc__)
    parser.add_argument("--times", type=positive, help="rounds of each fault (5; with --short 1)")
    parser.add_argument("--short", action="store_true", help="the faults that tell most, and no others")
    only = "this fault only; can be given several times"
    parser.add_argument("--only", action="append", choices=[*FAULTS], help=only)
    parser.add_argument("--seed", type=int, help="decides moments, durations and orders (by chance)")
    together = "wait for the last jobs when all faults are over, which saves minutes each"
    parser.add_argument("--together", action="store_true", help=together)
    lab = "a lab that stands, made as this program makes it; it is left there"
    parser.add_argument("--lab", metavar="NAME", help=lab)
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures here, too, by fault")
    options = parser.parse_args()
    options.times = options.times or (1 if options.short else _TIMES)
    return options


if __name__ == "__main__":
    sys.exit(main())
