"""The block that deploy keeps in /etc/hosts, told apart from what others write there.

Of the standard library alone: as a program, it prints what takes effect from the block on this machine.
"""

from __future__ import annotations

import ipaddress
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence

BEGIN = "# BEGIN cluster hosts (kept by deploy: changes inside this block are lost)"
END = "# END cluster hosts"
BLOCK = re.compile(rf"^{re.escape(BEGIN)}\n.*?^{re.escape(END)}\n", re.MULTILINE | re.DOTALL)
INSTALLER_LOOPBACK = "127.0.1.1"
"""The address that Debian's installer gives to the machine's own name."""

_HARMLESS_BEFORE_FILES = frozenset({"mymachines", "myhostname", "libvirt", "libvirt_guest"})


def contradictions(text: str, wanted: Mapping[str, str]) -> Iterator[tuple[int, str, str]]:
    """Number, name and address of lines outside the block that give a name another address than ``wanted``.

    The C library joins the addresses of all lines, so one below the block counts as well; capital letters do
    not.
    """
    kept_place = BLOCK.sub(lambda found: "\n" * found.group().count("\n"), text, count=1)
    addresses = {name.lower(): address for name, address in wanted.items()}
    for number, line in enumerate(kept_place.splitlines(), start=1):
        address, *names = line.partition("#")[0].split() or [""]
        for name in names:
            if _differs(address, addresses.get(name.lower(), "")):
                yield number, name, address


def is_loopback(address: str) -> bool:
    """Whether an address means every machine itself."""
    found = _ip(address)
    return found is not None and found.is_loopback


def asked_before_files(nsswitch: str) -> Sequence[str] | None:
    """The services that the text of nsswitch.conf has asked for hosts before /etc/hosts.

    None where it is not asked at all.
    """
    found = re.search(r"^\s*hosts:([^#\n]*)", nsswitch, re.MULTILINE)
    services = re.sub(r"\[[^]]*\]", " ", found.group(1)).split() if found else ["files"]
    if "files" not in services:
        return None
    before = services[: services.index("files")]
    return [service for service in before if service not in _HARMLESS_BEFORE_FILES]


def objections(hosts: str, nsswitch: str, own_name: str) -> Iterator[str]:
    """What keeps the block of the text of /etc/hosts from saying where its names lead to."""
    block = BLOCK.search(hosts)
    lines = [line.split() for line in (block[0].splitlines()[1:-1] if block else [])]
    wanted = {name: words[0] for words in lines for name in words[1:]}
    for number, name, address in contradictions(hosts, wanted):
        # Of the machine's own name a check warns.
        if not (is_loopback(address) and name.lower() == own_name.lower()):
            yield f"/etc/hosts:{number} gives {name} the address {address}: remove the name from this line"
    if wanted and (asked_before_files(nsswitch) or asked_before_files(nsswitch) is None):
        yield "/etc/nsswitch.conf does not ask files first for hosts: write 'hosts: files dns'"


def _differs(address: str, wanted: str) -> bool:
    """Whether two addresses of one family are not the same; a name may have one of each family."""
    one, other = _ip(address), _ip(wanted)
    return one is not None and other is not None and one.version == other.version and one != other


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address; an IPv4 one that is written as an IPv6 one counts as what it is."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _text(path: str) -> str:
    # Importing pathlib would take longer than all the rest.
    if not os.path.exists(path):  # noqa: PTH110
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        return file.read()


if __name__ == "__main__":
    own = os.uname().nodename.partition(".")[0]
    found = objections(_text("/etc/hosts"), _text("/etc/nsswitch.conf"), own)
    sys.stdout.writelines(f"{objection}\n" for objection in found)
