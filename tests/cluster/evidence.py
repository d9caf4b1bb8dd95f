"""What the machines of a failed test say of themselves, for whoever reads no more than its report."""

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


def evidence(cluster: Cluster) -> Iterator[str]:
    """Slurm's states, and the trouble in its logs; nothing of machines that are not there."""
    for host, questions in _QUESTIONS.items():
        for question in questions:
            if said := cluster.on(host, "timeout", "20", "sh", "-c", question, expect=None).strip():
                yield f"{host}: {question}\n{said}\n"
