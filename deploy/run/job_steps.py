"""The steps of jobs that run on a host, for programs that deploy sends there.

Sent before them as text over ssh and run as root, with the standard library of Python 3.9 alone.
"""

from __future__ import annotations

from pathlib import Path

PROCESSES = Path("/proc")


def steps() -> list[str]:
    """The steps of jobs that run here: each is a process slurmstepd, which says in its title whose it is."""
    found = []
    for place in PROCESSES.glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").split()
            # "slurmstepd: [12.batch]"; "slurmstepd infinity" keeps a cgroup and belongs to no job.
            if words and words[0].endswith("slurmstepd:") and _is_of_slurm(place):
                found.append(" ".join(words[1:]).strip("[]"))
        except OSError:
            continue
    return sorted(found)


def _is_of_slurm(place: Path) -> bool:
    """Whether a process is root's and runs slurmstepd: anybody can give one any title.

    The real user, which stays root's while a step opens files as its user. Debian calls it slurmstepd-wlm.
    """
    program = (place / "exe").readlink().name
    status = (place / "status").read_text(encoding="utf-8", errors="replace").splitlines()
    uids = next((line.split()[1:] for line in status if line.startswith("Uid:")), [])
    return uids[:1] == ["0"] and program.startswith("slurmstepd")
