"""`make slurm-testsuite`: Slurm's own test suite, from Debian's source package, on a lab of four machines."""

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml

from deploy.lab.state import need_lab
from tests.cluster.lab_cluster import Cluster
from tests.command_line import say
from tests.slurm_testsuite.outcomes import Outcome, counts, of_expect, of_pytest, surprises
from tests.slurm_testsuite.suite import prepare, run_expect, run_python

_RELEASE = "trixie"
_INTERRUPTED = 130
_KNOWN = Path(__file__).with_name("failures.yml")
Part = tuple[Callable[..., str], Callable[[str], list[Outcome]]]
PARTS: Mapping[str, Part] = {"python": (run_python, of_pytest), "expect": (run_expect, of_expect)}


def main() -> int:
    """Exit code 0 when everything ended as failures.yml has it."""
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # cleans up like Ctrl-C
    os.environ.setdefault("XDG_STATE_HOME", tempfile.mkdtemp(prefix="slurm-testsuite-state-"))
    try:
        with _lab(options.lab) as cluster:
            say(f"source package of slurm-wlm {prepare(cluster)}")
            differs = [_differs(cluster, part, options.tests) for part in options.part or PARTS]
        return int(any(differs))
    except KeyboardInterrupt:
        say("slurm-testsuite: interrupted; its machines are gone")
        return _INTERRUPTED


@contextmanager
def _lab(name: str) -> Iterator[Cluster]:
    """A lab that is there, or one of its own with a cluster."""
    if name:
        yield Cluster(name, need_lab(name).directory, _RELEASE)
        return
    with tempfile.TemporaryDirectory(prefix="slurm-testsuite-") as place:
        made = Cluster(f"test-slurm-testsuite-{os.getpid()}", Path(place) / "site", _RELEASE)
        try:
            made.up("--release", _RELEASE, "--nodes", "2", "--gpus", "0")
            made.deploy()
            yield made
        finally:
            made.down()


def _differs(cluster: Cluster, part: str, chosen: str) -> bool:
    run, read = PARTS[part]
    outcomes = read(run(cluster, chosen) if chosen else run(cluster))
    known = (yaml.safe_load(_KNOWN.read_text(encoding="utf-8")) or {}).get(part) or {}
    if chosen:
        known = {name: why for name, why in known.items() if name in {one.name for one in outcomes}}
    found = [*surprises(outcomes, known)]
    say(f"{part}: " + ", ".join(f"{number} {state}" for state, number in counts(outcomes).items()))
    for line in found:
        say(f"{part}: {line}")
    return bool(found)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make slurm-testsuite", description=__doc__)
    parser.add_argument("--lab", default="", help="a lab with a cluster that is there already")
    parser.add_argument("--part", action="append", choices=[*PARTS], help="one of the two parts")
    parser.add_argument("--tests", default="", help="some tests of it, as the part names them")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
