"""What a member of the database says of itself: whether it serves, and how far its rows go.

Sent as text over ssh and run as root, with the standard library of Python 3.9 alone. Changes nothing.
"""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path

from deploy.run.host_commands import runner, tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DATA = Path("/var/lib/mysql")
_KEY = Path("/etc/mysql/deploy-cluster.pem")
_STATUS = (
    "SHOW GLOBAL STATUS WHERE Variable_name IN "
    "('wsrep_cluster_status', 'wsrep_local_state_comment', 'wsrep_cluster_size')"
)
_RECOVERED = re.compile(r"WSREP: Recovered position:?\s+([0-9a-f-]{36}):(-?\d+)")
_OUTDATED = re.compile(
    r"ready for connections|Shifting OPEN -> PRIMARY|Failed to start mysqld for wsrep recovery"
)
"""From here on a position that was found before is none any more: rows come, or none was found."""
_NONE = "00000000-0000-0000-0000-000000000000"
_SYSTEMS_OWN = frozenset({"mysql", "performance_schema", "sys", "test"})
_run = runner(20)
_PORT = 4567
"""Where members and the arbitrator talk (Galera's documentation)."""
_SECONDS_TO_END, _PAUSE = 30.0, 0.5


def directory(database: str) -> str:
    """The name of a database's directory, where - and $ stand as @ and their code."""
    return re.sub(r"[^A-Za-z0-9_]", lambda letter: f"@{ord(letter[0]):04x}", database)


def _others(database: str) -> list[str]:
    """The databases with tables that are neither this one nor the system's own."""
    having = {path.parent.name for path in _DATA.glob("*/*.frm")}
    names = (re.sub(r"@([0-9a-f]{4})", lambda code: chr(int(code[1], 16)), name) for name in having)
    return sorted({*names} - {database} - _SYSTEMS_OWN)


def look(database: str) -> dict[str, Any]:
    """``serves``: with a majority, of so many ``votes``; ``is_synced``; ``has``: its tables are here.

    ``others``: databases beside it; ``is_alone``: it is a server of its own, or none yet.
    ``cluster``: of which it is a member, empty for none; ``at``: its last transaction, None where that is not
    known; ``was_last``: it ended in order and after all others. ``is_in_doubt``: it keeps no
    cluster, as while a table is altered or it is being copied: both are what was found when it started last.
    """
    place = _DATA / directory(database)
    is_ending = _is_ending()
    asked = ["mariadb", "--batch", "--skip-column-names", "--execute", _STATUS]
    said = dict(line.split("\t", 1) for line in _run(*asked)[0].splitlines() if "\t" in line)
    kept = _kept()
    is_alone = not (_KEY.exists() or said.get("wsrep_cluster_status") == "Primary")
    cluster, at = kept.get("uuid", _NONE), int(kept.get("seqno", "-1"))
    is_in_doubt = kept.get("uuid") == _NONE and not is_alone
    if at < 0 and (cluster != _NONE or is_in_doubt):
        # The unit looks for it at every start, after one that was no end in order.
        log = _run("journalctl", "-b", "-u", "mariadb", "--no-pager", "-o", "cat", "-n", "5000")[0]
        found, position = _recovered(log)
        if is_in_doubt or cluster == found:
            cluster, at = found, position
    return {
        "serves": said.get("wsrep_cluster_status") == "Primary" and not is_ending,
        "votes": int(said.get("wsrep_cluster_size", "0")),
        # While another one is copied from it, it serves as before.
        "is_synced": said.get("wsrep_local_state_comment") in ("Synced", "Donor/Desynced"),
        "has": place.is_dir() and any(place.glob("*.ibd")),
        "others": _others(database),
        "is_alone": is_alone,
        "cluster": "" if cluster == _NONE else cluster,
        "is_in_doubt": is_in_doubt,
        "at": at if at >= 0 else None,
        "was_last": kept.get("safe_to_bootstrap") == "1",
    }


def reaches(address: str) -> bool:
    """Whether a member or an arbitrator answers there."""
    try:
        socket.create_connection((address, _PORT), timeout=5).close()
    except OSError:
        return False
    return True


def _recovered(log: str) -> tuple[str, int]:
    """The cluster and the position that were found and that hold still: nothing was served since."""
    found = _NONE, -1
    for line in log.splitlines():
        if match := _RECOVERED.search(line):
            found = match[1], int(match[2])
        elif _OUTDATED.search(line):
            found = _NONE, -1
    return found


def _is_ending() -> bool:
    """Whether it is still about to end, when it had its time: until it has, it answers as if it went on."""
    deadline = time.monotonic() + _SECONDS_TO_END
    while _run("systemctl", "is-active", "mariadb")[0].strip() == "deactivating":
        if time.monotonic() > deadline:
            return True
        time.sleep(_PAUSE)
    return False


def _kept() -> dict[str, str]:
    try:
        text = (_DATA / "grastate.dat").read_text(encoding="utf-8")
    except OSError:
        return {}
    return dict(re.findall(r"^(\w+):\s*(\S+)", text, re.MULTILINE))


def main(verb: str, arguments: dict[str, Any]) -> None:
    """Answers on standard output."""
    tell(look(**arguments) if verb == "look" else reaches(**arguments))
