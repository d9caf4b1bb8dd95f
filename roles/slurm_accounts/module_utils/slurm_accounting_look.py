"""Prints what the accounting database holds of associations and users, without whom groups bring and take.

Standard library only: hosts run it as it is. Run by itself it asks sacctmgr; with words, for what they name.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

MEMBERSHIPS = "/var/lib/slurm_groups/memberships.json"
"""What sync-accounts did; see the role slurm_groups."""
ASSOCIATIONS = (
    "cluster,account,user,partition,parentname,fairshare,priority,qos,defaultqos,grptres,grptresmins,"
    "grptresrunmins,grpjobs,grpjobsaccrue,grpsubmitjobs,grpwall,maxtres,maxtrespernode,maxtresmins,maxjobs,"
    "maxjobsaccrue,maxsubmitjobs,maxwall,minpriothreshold"
)
CONFIGURATIONS = (Path("/etc/slurm/slurm.conf"), Path("/run/slurm/conf/slurm.conf"))
"""Slurm's own on a controller, and what sackd fetched; a host that has the database alone has neither."""
SLURMDBD = Path("/etc/slurm/slurmdbd.conf")
_SETTINGS = {
    "AuthType": "AuthType",
    "DbdHost": "AccountingStorageHost",
    "DbdBackupHost": "AccountingStorageBackupHost",
    "DbdPort": "AccountingStoragePort",
}
USERS = "user,defaultaccount,adminlevel"


def brought(text: str) -> set[tuple[str, str]]:
    """Accounts and users whose membership a group brought."""
    return {
        (account, user)
        for account, made in json.loads(text or "{}").items()
        for user in (*made["open"], *made["closed"])
    }


def watched(associations: str, users: str, synced: set[tuple[str, str]]) -> Iterator[str]:
    """The lines that change by nobody but deploy and whoever types sacctmgr."""
    staying = set()
    leaving = {user for _, user in synced}
    for line in associations.splitlines():
        _cluster, account, user = line.split("|")[:3]
        if (account, user) not in synced:
            staying.add(user)
            yield line
    for line in users.splitlines():
        user = line.split("|")[0]
        if user in staying or user not in leaving:
            yield line


def own_configuration(slurmdbd: str) -> str:
    """A slurm.conf from slurmdbd's configuration, for a host of slurmdbd that has none."""
    lines = [
        "ClusterName=asked",
        "SlurmctldHost=localhost",
        "AccountingStorageType=accounting_storage/slurmdbd",
    ]
    for theirs, ours in _SETTINGS.items():
        if found := re.search(rf"^{theirs}=(\S+)", slurmdbd, re.MULTILINE):
            lines.append(f"{ours}={found[1]}")
    return "".join(f"{line}\n" for line in lines)


def _shown(*words: str) -> str:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".conf") as file:
        environment = dict(os.environ)
        if SLURMDBD.exists() and not any(path.exists() for path in CONFIGURATIONS):
            file.write(own_configuration(SLURMDBD.read_text(encoding="utf-8")))
            file.flush()
            environment["SLURM_CONF"] = file.name
        done = subprocess.run(
            ["sacctmgr", "--noheader", "--parsable2", "show", *words],
            stdin=subprocess.DEVNULL,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        sys.exit(1)
    return done.stdout


def main(*words: str) -> None:
    """What sacctmgr says now."""
    if words:
        sys.stdout.write(_shown(*words))
        return
    path = Path(MEMBERSHIPS)
    synced = brought(path.read_text(encoding="utf-8") if path.exists() else "")
    associations = _shown("associations", f"format={ASSOCIATIONS}")
    found = watched(associations, _shown("users", f"format={USERS}"), synced)
    sys.stdout.write("".join(f"{line}\n" for line in found))


if __name__ == "__main__":
    main(*sys.argv[1:])
