#!/usr/bin/python3
"""Ends the rows of jobs that slurmctld does not know any more, as `sacctmgr show runawayjobs` does.

A slurmctld that dies forgets jobs that it had just taken or started. What slurmdbd was told of them stays
PENDING or RUNNING for ever, and sreport counts on for it. Slurm finds them and sets their end to their start,
which is all that is known, when somebody says yes. That is said here of those that were found on the day
before, too: what is known again by then is none.

Runs once a day on all controllers; the one that leads does it. Run as root. Written with the standard library
of Python 3.9 alone.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from slurm_commands import leads, run

RECORD = Path("/var/lib/deploy-runaway-jobs/found")
_SHOW = ("show", "runawayjobs", "format=ID,Submit,State,Start")
_ROW = re.compile(r"^\d+\|\S*\|\w+\|\S*$", re.MULTILINE)
_ALL_TOLD = re.compile(r"DBD Agent queue size:\s*0$", re.MULTILINE)
_NO = "n\n"


def unknown() -> set[str]:
    """Their number, time of submission, state and start. Raises RuntimeError where Slurm does not say."""
    code, said = run("sacctmgr", "--noheader", "--parsable2", *_SHOW, told=_NO)
    if code != 0:
        raise RuntimeError(said)
    return {*_ROW.findall(said)}


def look(record: Path = RECORD) -> str:
    """What was found and done, or empty. Raises RuntimeError where Slurm does not answer."""
    code, said = run("sdiag")
    if code != 0:
        raise RuntimeError(said)
    if not _ALL_TOLD.search(said):
        return "slurmdbd has not been told all yet: nothing is taken for ended"
    found = unknown()
    before = {*record.read_text(encoding="utf-8").splitlines()} if record.exists() else set()
    record.write_text("".join(f"{row}\n" for row in sorted(found)), encoding="utf-8")
    if not found:
        return ""
    rows = ", ".join(sorted(found))
    if found - before:
        return f"rows of jobs that slurmctld does not know, ended tomorrow if it still does not: {rows}"
    code, said = run("sacctmgr", "--immediate", *_SHOW)
    if code != 0:
        raise RuntimeError(said)
    record.unlink()
    return f"ended rows of jobs that slurmctld has not known for a day: {rows}"


def main(controller: str) -> None:
    """Looks, once; what does not answer is asked tomorrow."""
    try:
        said = look() if leads(run("scontrol", "ping")[1], controller) else ""
    except RuntimeError as problem:
        said = f"Slurm could not be asked: {problem}"
    if said:
        sys.stderr.write(f"{said}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
