"""Whether the names of the cluster's hosts will lead to the addresses that the inventory gives.

The role hosts_file writes all of them into one block of /etc/hosts, so a name that is not known yet is no
finding. What that block cannot mend is: another address for the name elsewhere in the file, an order of
lookups in which the file is not first, and names whose address the inventory does not say.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ansible.module_utils.host_checks.at_once import ask
from ansible.module_utils.host_checks.finding import error, warning
from ansible.module_utils.hosts_block import BLOCK, INSTALLER_LOOPBACK

_HARMLESS_BEFORE_FILES = frozenset({"mymachines", "myhostname", "libvirt", "libvirt_guest"})
_LOOKUP_SECONDS = 5.0


def check_hosts_file(
    text: str, entries: Sequence[Mapping[str, Any]], own_name: str, *, removes_loopback_name: bool
) -> Iterator[dict[str, str]]:
    """Lines of /etc/hosts, outside of deploy's block, that give a name of the cluster another address."""
    wanted = {name: entry["address"] for entry in entries for name in entry["names"]}
    for number, address, names in _lines_of_others(text):
        for name in names:
            if name not in wanted or not _differs(address, wanted[name]):
                continue
            place = f"/etc/hosts:{number}"
            if ipaddress.ip_address(address).is_loopback and name == own_name:
                if address == INSTALLER_LOOPBACK and removes_loopback_name:
                    continue
                yield warning(
                    "own-name-is-loopback",
                    f"{place} says that {name} is {address}; programs that tell others this address, such as "
                    f"MPI, are not found by them",
                    f"remove the name {name} from this line",
                )
            else:
                yield error(
                    "name-resolves-elsewhere",
                    f"{name} is {address} in {place}, and {wanted[name]} in the inventory",
                    f"remove {name} from this line, or correct its address in the inventory",
                )


def _lines_of_others(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Line number, address and names of what deploy does not keep."""
    kept_place = BLOCK.sub(lambda found: "\n" * found.group().count("\n"), text)
    for number, line in enumerate(kept_place.splitlines(), start=1):
        address, *names = line.partition("#")[0].split() or [""]
        if names and _version(address):
            yield number, address, names


def _differs(address: str, wanted: str) -> bool:
    """Whether two addresses of one family are not the same; a name may have one of each family."""
    if _version(address) != _version(wanted):
        return False
    return ipaddress.ip_address(address) != ipaddress.ip_address(wanted)


def _version(address: str) -> int:
    try:
        return ipaddress.ip_address(address).version
    except ValueError:
        return 0


def check_lookup_order(nsswitch: str) -> Iterator[dict[str, str]]:
    """A name service switch that does not ask /etc/hosts first."""
    found = re.search(r"^\s*hosts:([^#\n]*)", nsswitch, re.MULTILINE)
    services = re.sub(r"\[[^]]*\]", " ", found.group(1)).split() if found else ["files"]
    before = services[: services.index("files")] if "files" in services else services
    others = [service for service in before if service not in _HARMLESS_BEFORE_FILES]
    if others or "files" not in services:
        yield error(
            "hosts-file-not-first",
            f"names are looked up in {', '.join(services)}: /etc/hosts, where the cluster's names are kept, "
            f"is {'not first' if 'files' in services else 'not asked'}",
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
