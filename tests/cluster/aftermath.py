"""After a failed test: what its machines say of themselves, and how the next test gets usable ones.

Nothing here raises for a machine that does not answer: what a hook of pytest raises ends a worker, with all
the tests that it had yet to run, and no report says why.
"""

import subprocess
from collections.abc import Iterator

from tests.cluster.lab_cluster import Cluster

_PROBLEMS = (
    "grep --no-messages --ignore-case --extended-regexp 'error|fatal|requeue|prolog|not responding' "
    "/var/log/slurm/{daemon}.log | grep --invert-match 'Zero Bytes' | tail --lines 25"
)
_QUESTIONS = {
    "ctl1": (
        "sinfo --Node --long --exact",
        "sinfo --list-reasons",
        "squeue --all --long",
        _PROBLEMS.format(daemon="slurmctld"),
    ),
    "node1": (_PROBLEMS.format(daemon="slurmd"),),
    "node2": (_PROBLEMS.format(daemon="slurmd"),),
}
_USABLE = {
    **dict.fromkeys(("node1", "node2"), "systemctl start munge slurmd"),
    "ctl1": "systemctl start munge slurmdbd slurmctld; scontrol update nodename=ALL state=resume",
}
"""Ends what a failed test may leave, which would fail those after it: stopped daemons, drains."""
_WITHOUT_JOBS = {"ctl1": "scancel --user alice"}


def evidence(cluster: Cluster) -> Iterator[str]:
    """Slurm's states, and the trouble in its logs; nothing of machines that are not there."""
    for host, questions in _QUESTIONS.items():
        for question in questions:
            if said := _asked(cluster, host, question, seconds=20):
                yield f"{host}: {question}\n{said}\n"


def make_usable(cluster: Cluster, *, with_jobs: bool) -> Iterator[str]:
    """Starts machines and daemons, ends drains, and jobs unless another test's; says what it could not."""
    try:
        cluster.power_all_on()
    except subprocess.TimeoutExpired:
        yield "not all of its machines could be started, or let the lab's key in\n"
    for commands in (_USABLE, {} if with_jobs else _WITHOUT_JOBS):
        for host, command in commands.items():
            _asked(cluster, host, command, seconds=60)


def _asked(cluster: Cluster, host: str, command: str, seconds: int) -> str:
    try:
        return cluster.on(host, "timeout", f"{seconds}", "sh", "-c", command, expect=None).strip()
    except subprocess.TimeoutExpired:
        return "no answer"
