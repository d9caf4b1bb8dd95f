"""Prints what the accounting database holds of associations and users, without whom groups bring and take.

Standard library only: hosts run it as it is. Run by itself it asks sacctmgr.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MEMBERSHIPS = "/var/lib/slurm_groups/memberships.json"
"""What sync-accounts did; see the role slurm_groups."""
ASSOCIATIONS = (
    "cluster,account,user,partition,parentname,fairshare,priority,qos,defaultqos,grptres,grptresmins,"
    "grptresrunmins,grpjobs,grpjobsaccrue,grpsubmitjobs,grpwall,maxtres,maxtrespernode,maxtresmins,maxjobs,"
    "maxjobsaccrue,maxsubmitjobs,maxwall,minpriothreshold"
)
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


def _shown(entity: str, columns: str) -> str:
    command = ["sacctmgr", "--noheader", "--parsable2", "show", entity, f"format={columns}"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        sys.exit(1)
    return done.stdout


def main() -> None:
    """What sacctmgr says now."""
    path = Path(MEMBERSHIPS)
    synced = brought(path.read_text(encoding="utf-8") if path.exists() else "")
    found = watched(_shown("associations", ASSOCIATIONS), _shown("users", USERS), synced)
    sys.stdout.write("".join(f"{line}\n" for line in found))


if __name__ == "__main__":
    main()
