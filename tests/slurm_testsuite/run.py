"""Runs files of tests on one cluster: several side by side at first, then alone what did not pass so."""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed

from tests.cluster.lab_cluster import Cluster
from tests.command_line import say
from tests.slurm_testsuite.outcomes import counts, settled
from tests.slurm_testsuite.results import Results, Run
from tests.slurm_testsuite.suite import FOR_ITSELF, HOST, USER, run_file

File = tuple[str, str]
"""A part and one of its files."""
Known = Mapping[str, Mapping[str, str]]
_EMPTY_AFTER = 180


def run_all(
    cluster: Cluster, files: Iterable[File], results: Results, known: Known, *, jobs: int, limit: int
) -> None:
    """Leaves a result of each file that counts; those that are there already are not run again.

    Most of the suite's time passes in waiting, so that side by side costs little. But others
    disturb a test that asks for idle nodes or for all jobs: it passes there, or is run again alone.
    """

    def is_open(file: File) -> bool:
        run = results.runs.get(file)
        return run is None or not (run.alone or settled(run.outcomes, known[file[0]]))

    def one(file: File, *, alone: bool) -> None:
        run, said = run_file(cluster, *file, alone=alone, limit=limit)
        results.keep(run, said)
        say(_line(run))

    files = [*files]
    if jobs > 1:
        new = [file for file in files if file not in results.runs and file not in FOR_ITSELF]
        pool = ThreadPoolExecutor(jobs)
        try:
            for done in as_completed([pool.submit(one, file, alone=False) for file in new]):
                done.result()
        finally:
            # What runs when it is interrupted ends with the lab.
            pool.shutdown(wait=False, cancel_futures=True)
    for file in filter(is_open, files):
        _empty(cluster)
        one(file, alone=True)


def _empty(cluster: Cluster) -> None:
    """Takes away what earlier tests left: their jobs, and the states that they brought nodes into."""
    cluster.on(HOST, "scancel", "--user", USER)
    deadline = time.monotonic() + _EMPTY_AFTER
    while busy := {node: state for node, state in cluster.plain_states().items() if state != "idle"}:
        if time.monotonic() > deadline:
            say(f"not idle though no job is left, and resumed: {busy}")
            for node in busy:
                cluster.on(HOST, "scontrol", "update", f"nodename={node}", "state=resume", expect=None)
            return
        time.sleep(1)


def _line(run: Run) -> str:
    ends = ", ".join(f"{number} {state}" for state, number in counts(run.outcomes).items() if number)
    return f"{run.part} {run.file}: {ends or 'no test'} ({run.seconds:.0f} s{', alone' if run.alone else ''})"
