"""`make slurm-testsuite`: Slurm's own test suite, from Debian's source package, on a lab of six machines."""

import argparse
import json
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from tests.bench import machine
from tests.campaign import standing_or
from tests.cluster.lab_cluster import Cluster
from tests.command_line import positive, say
from tests.slurm_testsuite.outcomes import SKIPPED, Outcome, counts, in_short, surprises
from tests.slurm_testsuite.results import Results
from tests.slurm_testsuite.run import File, Known, run_all
from tests.slurm_testsuite.suite import PARTS, files_of, prepare

_RELEASE = "trixie"
_MACHINES = ("--nodes", "4", "--gpus", "2")
"""Of nodes so many that tests run side by side, and that those run which want three or four."""
_VARIABLES = """
# Tests take nodes down, and want them to stay so until they say otherwise.
slurmctld_return_to_service: 1
"""
_INTERRUPTED = 130
_KNOWN = Path(__file__).with_name("failures.yml")


def main() -> int:
    """Exit code 0 when everything ended as failures.yml has it."""
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # cleans up like Ctrl-C
    results = Results(options.results or Path(tempfile.mkdtemp(prefix="slurm-testsuite-")))
    say(f"results: {results.place}; to go on after an interruption: --results {results.place}")
    try:
        with tempfile.TemporaryDirectory(prefix="slurm-testsuite-") as place:
            # Its runs do not become the last run of the person who types this.
            os.environ.setdefault("XDG_STATE_HOME", place)
            with standing_or(options.lab, lambda: _lab(Path(place))) as cluster:
                return int(_fail(cluster, results, options))
    except KeyboardInterrupt:
        say("slurm-testsuite: interrupted; the machines that it made are gone")
        return _INTERRUPTED


@contextmanager
def _lab(place: Path) -> Iterator[Cluster]:
    """A lab of its own, with a cluster."""
    made = Cluster(f"test-slurm-testsuite-{os.getpid()}", place / "site", _RELEASE)
    try:
        made.up("--release", _RELEASE, *_MACHINES)
        with (made.directory / "group_vars" / "slurm-master.yml").open("a", encoding="utf-8") as file:
            file.write(_VARIABLES)
        made.deploy()
        yield made
    finally:
        made.down()


def _fail(cluster: Cluster, results: Results, options: argparse.Namespace) -> bool:
    known = _known()
    version = prepare(cluster)
    say(f"source package of slurm-wlm {version}")
    files: list[File] = [
        (part, file) for part in options.part or PARTS for file in files_of(cluster, part, options.tests)
    ]
    if not files:
        say(f"slurm-testsuite: no file of tests is called {options.tests}")
        return True
    if options.tests:
        # Whoever names tests wants them run.
        for file in files:
            results.runs.pop(file, None)
    run_all(cluster, files, results, known, jobs=options.jobs, limit=options.limit)
    parts = {
        part: [outcome for file in files if file[0] == part for outcome in results.runs[file].outcomes]
        for part in dict.fromkeys(part for part, _ in files)
    }
    if options.json:
        text = json.dumps({part: _figures(found, version) for part, found in parts.items()}, indent=1)
        options.json.write_text(text + "\n", encoding="utf-8")
    if options.tests:
        # Of the others nothing is known.
        names = {outcome.name for found in parts.values() for outcome in found}
        known = {part: {name: why for name, why in known[part].items() if name in names} for part in known}
    differ = [_differs(part, found, known[part]) for part, found in parts.items()]
    return any(differ)


def _known() -> Known:
    read = yaml.safe_load(_KNOWN.read_text(encoding="utf-8"))
    return {part: read[part] for part in PARTS}


def _differs(part: str, outcomes: list[Outcome], known: Mapping[str, str]) -> bool:
    say(f"{part}: " + ", ".join(f"{number} {state}" for state, number in counts(outcomes).items()))
    found = [*surprises(outcomes, known)]
    for line in found:
        say(f"{part}: {line}")
    return bool(found)


def _figures(outcomes: list[Outcome], version: str) -> Mapping[str, Any]:
    """What the documentation says of a part."""
    skipped = Counter(in_short(outcome.said) for outcome in outcomes if outcome.state == SKIPPED)
    return {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        **machine.describe(),
        "slurm": version,
        **counts(outcomes),
        "why skipped": dict(skipped.most_common()),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make slurm-testsuite", description=__doc__)
    parser.add_argument("--lab", default="", help="a lab with a cluster that is there already")
    parser.add_argument("--part", action="append", choices=[*PARTS], help="one of the two parts")
    parser.add_argument(
        "--tests", default="", help="some files of it, as a shell reads them in its directory"
    )
    place = "where results are kept, one by one; what has a result there is not run again"
    parser.add_argument("--results", type=Path, metavar="DIRECTORY", help=place)
    parser.add_argument("--jobs", type=positive, default=4, help="files of tests side by side (4)")
    parser.add_argument(
        "--limit", type=positive, default=1200, help="seconds that a file of tests may take (1200)"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="keep the figures of the documentation here"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
