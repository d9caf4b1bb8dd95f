"""What deploy runs where a host has left the cluster: on that host, and on a controller for its jobs.

Sent as text over ssh and run as root, with the standard library of Python 3.9 alone.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from deploy.run.host_commands import runner, tell
from deploy.run.job_steps import steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

MUNGE_KEY = Path("/etc/munge/munge.key")
SECRETS = {
    MUNGE_KEY: "the cluster's munge key",
    Path("/etc/slurm/slurm.jwks"): "the cluster's key of auth/slurm",
    Path("/etc/slurm/jwt_hs256.key"): "the cluster's key of tokens",
    Path("/etc/slurm/slurmdbd.conf"): "slurmdbd's password",
    Path("/etc/mysql/deploy-cluster.pem"): "the key of the database's members",
    Path("/var/lib/garb/member.pem"): "the key of the database's members",
}
RECORDS = Path("/var/lib/deploy")
# Of a ledger of drains that controllers share it has the pointer alone.
_OURS = (
    *("converged", "left.json", "pending.json", "hosts.json"),
    *("drains.json", "reservations.json", "ledger.json"),
)
# Slurm's own before munge, which they speak through to the last; what may restart a daemon before that.
_SERVICES = (
    *("slurmd", "deploy-slurmctld-registers", "slurmctld", "deploy-slurmdbd-handover", "slurmdbd"),
    *("sackd", "slurmrestd", "munge", "garb"),
)
# By key of the module slurm_jobs the letter that squeue has for it.
_JOB = {"id": "%i", "state": "%T", "user": "%u", "partition": "%P", "nodes": "%N", "required": "%n"}
_MEMBER_KEY = Path("/etc/mysql/deploy-cluster.pem")
_run = runner(50)


def _services() -> tuple[str, ...]:
    """The services of the cluster: a database where it is a member; another may be for something else."""
    return (*_SERVICES, *(("mariadb",) if _MEMBER_KEY in SECRETS and _MEMBER_KEY.exists() else ()))


def _running(services: Iterable[str]) -> list[str]:
    """Those that run, or will at the next boot."""
    found = []
    for name in services:
        runs = _run("systemctl", "is-active", "--quiet", name)[1]
        if runs or _run("systemctl", "is-enabled", "--quiet", name)[1]:
            found.append(f"running {name}" if runs else f"{name} at boot")
    return found


def is_of_another_cluster(key: str | None) -> bool:
    """Whether the host has a munge key, and not the one with this hash."""
    return (
        key is not None and MUNGE_KEY.exists() and hashlib.sha256(MUNGE_KEY.read_bytes()).hexdigest() != key
    )


def holds(key: str | None, services: Iterable[str] = ()) -> list[str]:
    """What a host still has of the cluster whose munge key has this hash, among it of these services.

    With the key of another cluster it is part of that one, and cannot speak to this one any more.
    """
    if is_of_another_cluster(key):
        return []
    secrets = [what for path, what in SECRETS.items() if path.exists()]
    has_records = any((RECORDS / name).exists() for name in _OURS)
    return [*_running(services or _services()), *secrets, *[f"records in {RECORDS}"] * has_records]


def leave(key: str | None) -> dict[str, list[str]]:
    """Takes from the host what makes it a member of the cluster.

    ``jobs`` that run there keep it from being done; what it ``holds`` afterwards could not be taken away.
    """
    services = _services()
    before = holds(key, services)
    running = steps() if before else []
    if running or not before:
        return {"jobs": running, "done": [], "holds": before}
    # Of a failback that was cut off: it would start slurmctld again.
    _run("systemctl", "stop", "deploy-stands-by.timer")
    for name in services:
        _run("systemctl", "disable", "--now", name)
    for path in SECRETS:
        path.unlink(missing_ok=True)
    for name in _OURS:
        if (RECORDS / name).is_dir():
            shutil.rmtree(RECORDS / name)
        else:
            (RECORDS / name).unlink(missing_ok=True)
    after = holds(key, services)
    return {"jobs": [], "done": [what for what in before if what not in after], "holds": after}


def jobs(node: str) -> list[str]:
    """The jobs that Slurm has on a node; asked on a controller. It knows none of a node that it has not."""
    if not _run("scontrol", "show", "node", node)[1]:
        return []
    said, succeeded = _run("squeue", "--noheader", "--nodelist", node, "--format", "%A (%u)")
    return [line.strip() for line in said.splitlines() if line.strip()] if succeeded else [said.strip()]


def queue(configuration: str) -> list[dict[str, str]] | None:
    """The jobs of the cluster with this slurm.conf; None where its controller does not answer."""
    # Without it squeue would try for minutes.
    words = ("timeout", "15", "squeue", "--noheader", "--all", "--format", "|".join(_JOB.values()))
    said, succeeded = _run("env", f"SLURM_CONF={configuration}", *words)
    rows = (line.strip().split("|") for line in said.splitlines())
    return [dict(zip(_JOB, row)) for row in rows if len(row) == len(_JOB)] if succeeded else None  # noqa: B905


def main(verb: str, arguments: dict[str, Any]) -> None:
    """Does what it is asked for and prints the answer as one line."""
    verbs: dict[str, Callable[..., Any]] = {
        "holds": holds,
        "leave": leave,
        "jobs": jobs,
        "queue": queue,
        "steps": steps,
    }
    tell(verbs[verb](**arguments))
