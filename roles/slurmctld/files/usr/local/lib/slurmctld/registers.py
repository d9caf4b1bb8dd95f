#!/usr/bin/python3
"""Has slurmctld go on where the host of slurmdbd is gone: with a second one, or when the first is back.

Who waits for an answer of a host that lost its power is not told: slurmctld waits for fifteen minutes, in
which it accounts for nothing, and answers nobody any more who has it read its configuration anew, or stop
(24.11.5 seen). So its connections there are ended once nobody takes new ones there, which is sure to be late
enough: a slurmdbd that ended has ended them itself.

What sacctmgr changes, a slurmdbd tells those slurmctld that have registered with it, and no other learns of
it later. A first one asks for that when it starts. One that stands by asks when it gives up again, not when
it takes over (24.11.5 seen; 22.05 to 26.05 by their source): as long as it serves, slurmctld knows no new
account, user, limit or QOS, and refuses their jobs. One that reads its configuration anew registers, and asks
for all of them; one older than 23.11 does that when it starts.

Runs on all controllers; the one that leads registers. Run as root. Written with the standard library of
Python 3.9 alone.
"""

from __future__ import annotations

import re
import socket
import sys
import time

from slurm_commands import leads, run

_READS_ANEW = (23, 11)
_CONNECT_SECONDS = 5
_LOOK_SECONDS, _RETRY_SECONDS = 5, 60
_LOOKS_UNTIL_GONE = 2


def serves(host: str, port: int) -> bool:
    """Whether slurmdbd takes connections there; one that stands by does not."""
    try:
        socket.create_connection((host, port), timeout=_CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def end_connections(host: str, port: int) -> None:
    """Ends those from here to there, of which whoever waits learns."""
    try:
        addresses = {found[4][0] for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    except OSError:
        return  # what has no address has no connection
    for address in sorted(map(str, addresses)):
        there = ("state", "established", "dst", address, "dport", "=", f":{port}")
        code, said = run("ss", "--no-header", "--numeric", "--tcp", "--kill", *there)
        if code != 0:
            sys.stderr.write(f"connections to {host}, which is gone, could not be ended: {said}\n")
        elif said:
            sys.stderr.write(f"ended connections to {host}, which is gone:\n{said}\n")


def anew() -> tuple[str, ...]:
    """The command by which slurmctld registers."""
    found = re.search(r"(\d+)\.(\d+)", run("slurmctld", "-V")[1])
    if found and (int(found[1]), int(found[2])) >= _READS_ANEW:
        return ("scontrol", "reconfigure")
    return ("systemctl", "try-restart", "slurmctld")


def register(host: str) -> bool:
    """Whether it has registered."""
    command = anew()
    code, said = run(*command)
    if code == 0:
        sys.stderr.write(f"the slurmdbd of {host} has taken over: slurmctld has registered with it\n")
    else:
        sys.stderr.write(
            f"the slurmdbd of {host} has taken over, and slurmctld does not learn what sacctmgr changes: "
            f"{' '.join(command)}: {said}\n"
        )
    return code == 0


def main(controller: str, port: str, first: str, second: str = "") -> None:
    """Looks, again and again."""
    looks_gone, is_registered = 0, False
    while True:
        pause = _LOOK_SECONDS
        looks_gone = 0 if serves(first, int(port)) else looks_gone + 1
        if looks_gone >= _LOOKS_UNTIL_GONE:
            end_connections(first, int(port))
        if not second or looks_gone < _LOOKS_UNTIL_GONE or not serves(second, int(port)):
            is_registered = False
        elif not is_registered and leads(run("scontrol", "ping")[1], controller):
            is_registered = register(second)
            pause = _LOOK_SECONDS if is_registered else _RETRY_SECONDS
        time.sleep(pause)


if __name__ == "__main__":
    main(*sys.argv[1:])
