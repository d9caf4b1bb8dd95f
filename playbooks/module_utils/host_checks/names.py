"""Whether the names of the cluster's hosts will lead to the addresses that the inventory gives.

The role hosts_file writes all of them into one block of /etc/hosts, so a name that is not known yet is no
finding. What that block cannot fix is: another address for the name elsewhere in the file, an order of
lookups in which the file is not first, and names whose address the inventory does not say.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ansible.module_utils.host_checks.at_once import ask
from ansible.module_utils.host_checks.finding import error, warning
from ansible.module_utils.hosts_block import (
    INSTALLER_LOOPBACK,
    asked_before_files,
    contradictions,
    is_loopback,
)

_LOOKUP_SECONDS = 5.0


def check_hosts_file(
    text: str, entries: Sequence[Mapping[str, Any]], own_name: str, *, removes_loopback_name: bool
) -> Iterator[dict[str, str]]:
    """Lines of /etc/hosts, outside of deploy's block, that give a name of the cluster another address."""
    wanted = {name: entry["address"] for entry in entries for name in entry["names"]}
    for number, name, address in contradictions(text, wanted):
        place = f"/etc/hosts:{number}"
        if is_loopback(address) and name.lower() == own_name.lower():
            if address == INSTALLER_LOOPBACK and removes_loopback_name:
                continue
            yield warning(
                "own-name-is-loopback",
                f"{place} says that {name} is {address}; programs that tell others this address, such as "
                f"MPI, are not found by them",
                f"remove the name {name} from this line",
            )
        else:
            meant = next(wanted[each] for each in wanted if each.lower() == name.lower())
            yield error(
                "name-resolves-elsewhere",
                f"{name} is {address} in {place}, and {meant} in the inventory",
                f"remove {name} from this line, or correct its address in the inventory",
            )


def check_lookup_order(nsswitch: str) -> Iterator[dict[str, str]]:
    """A name service switch that does not ask /etc/hosts first."""
    others = asked_before_files(nsswitch)
    if others is None or others:
        where = f"in {', '.join(others)} before files" if others else "without files"
        yield error(
            "hosts-file-not-first",
            f"names are looked up {where}: /etc/hosts, where the cluster's names are kept, is "
            f"{'not first' if others else 'not asked'}",
            "write 'hosts: files dns' into /etc/nsswitch.conf",
        )


def _lookup(name: str) -> bool:
    try:
        return bool(socket.getaddrinfo(name, None))
    except OSError:
        return False


def check_lookups(names: Iterable[str], lookup: Callable[[str], bool] = _lookup) -> Iterator[dict[str, str]]:
    """Names that only a name server can know, and does not."""
    known = ask(names, lookup, _LOOKUP_SECONDS)
    for name in sorted(names):
        if not known.get(name):
            yield error(
                "name-not-resolved",
                f"{name} cannot be resolved here, and the inventory gives no address for it",
                f"write {name} ansible_host=ADDRESS into the inventory, or add the name to DNS",
            )


def check_hostname(expected: str, hostname: str) -> Iterator[dict[str, str]]:
    """A machine that does not call itself what slurm.conf calls it: Slurm's daemons would not start."""
    short = hostname.partition(".")[0]
    if expected and short != expected:
        yield error(
            "hostname-differs",
            f"the machine calls itself {short}; Slurm's daemons look for their own name in slurm.conf, which "
            f"has {expected}",
            f"on the machine: hostnamectl set-hostname {expected}",
        )
