"""QOS that have jobs: up to 24.11 Slurm deletes one under them without a word, so it is asked before."""

from collections.abc import Callable, Iterable

from ansible.module_utils.slurm_accounting_plan import Step

Squeue = Callable[..., str]
"""Runs squeue with the given arguments and returns what it prints; raises what ``in_use`` is told."""


def deleted_qos(steps: Iterable[Step]) -> list[str]:
    """The QOS that steps delete."""
    return [step.names[0] for step in steps if (step.verb, step.entity) == ("delete", "qos")]


def in_use(names: Iterable[str], squeue: Squeue, failure: tuple[type[Exception], ...]) -> dict[str, str]:
    """Those of the QOS that have jobs, or of which nobody can say so, and why each stays."""
    found = {}
    for name in names:
        try:
            jobs = squeue("--noheader", "--all", "--format=%A", f"--qos={name}").split()
        except failure as problem:
            found[name] = (
                f"qos {name}: not removed yet, because nobody says whether jobs are in it: {problem}"
            )
        else:
            if jobs:
                found[name] = (
                    f"qos {name}: not removed yet, because {len(set(jobs))} jobs are in it "
                    f"(squeue --qos={name}). One that waits with the reason InvalidQOS goes on in another: "
                    "scontrol update JobId=NUMBER QOS=NAME"
                )
    return found


def sparing(steps: Iterable[Step], spared: Iterable[str]) -> list[Step]:
    """The steps but those that delete one of these QOS."""
    kept = {("delete", "qos", (name,)) for name in spared}
    return [step for step in steps if (step.verb, step.entity, step.names) not in kept]
