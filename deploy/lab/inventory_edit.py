"""What of a lab is in an inventory that an admin may have changed; new lines are added, all others stay."""

import re
from collections.abc import Mapping

from deploy.errors import error
from deploy.lab.addresses import controller_number, is_of_labs
from deploy.lab.site_files import IDENTITY, host_line

_GROUP = "slurm-node"
_ADDRESS = re.compile(r"""^[^#;\n]*?\bansible_(?:ssh_)?host\s*=\s*["']?([^\s"']+)""", re.MULTILINE)


def is_of_a_lab(text: str) -> bool:
    """Whether all hosts open with a lab's key and have addresses that labs have; no site's do."""
    addresses = _ADDRESS.findall(text)
    return IDENTITY in text and bool(addresses) and all(map(is_of_labs, addresses))


def missing_hosts(text: str, addresses: Mapping[str, str]) -> dict[str, str]:
    """Those of ``addresses`` (host -> address) that no line of the inventory starts with."""
    named = {line.split()[0] for line in text.splitlines() if line.strip()}
    return {host: address for host, address in addresses.items() if host not in named}


def moved_hosts(text: str, addresses: Mapping[str, str]) -> list[str]:
    """The right definitions of those hosts that the inventory defines with another address."""
    right: set[str] = set()
    wrong: list[str] = []
    for line in text.splitlines():
        host, *variables = line.split() or [""]
        for variable in variables:
            name, _, value = variable.partition("=")
            if host in addresses and name == "ansible_host":
                (right.add if value == addresses[host] else wrong.append)(host)
    return [host_line(host, addresses[host]) for host in wrong if host not in right]


def lines_to_add(addresses: Mapping[str, str]) -> str:
    """What to type into the inventory for these machines."""
    nodes = [host for host in addresses if not controller_number(host)]
    masters = [host for host in addresses if controller_number(host)]
    lines = ["[all]", *(host_line(*pair) for pair in addresses.items())]
    lines += [f"[{_GROUP}]", *nodes] if nodes else []
    lines += ["[slurm-master]", *masters] if masters else []
    return "\n".join(lines)


def add_nodes(text: str, addresses: Mapping[str, str]) -> str:
    """The inventory with these compute nodes defined in [all] and listed in [slurm-node]."""
    lines = text.splitlines(keepends=True)
    if (end := _end_of_section(lines, _GROUP)) is None:
        raise error(
            "lab-inventory-section",
            f"the inventory has no section [{_GROUP}] to add machines to",
            hint=f"add these lines by hand:\n{lines_to_add(addresses)}",
        )
    newline = "\r\n" if lines[0].endswith("\r\n") else "\n"
    _insert(lines, end, list(addresses), newline)
    definitions = [host_line(*pair) for pair in addresses.items()]
    if (end := _end_of_section(lines, "all")) is None:
        lines[:0] = [line + newline for line in (*definitions, "")]  # hosts above any section are in "all"
    else:
        _insert(lines, end, definitions, newline)
    return "".join(lines)


def _end_of_section(lines: list[str], section: str) -> int | None:
    """Where a line goes that shall be the section's last: after its last one with content."""
    end = None
    inside = False
    for index, line in enumerate(lines):
        content = line.strip()
        if content.startswith("["):
            inside = content.split("#")[0].split(";")[0].strip() == f"[{section}]"
            end = index + 1 if inside else end
        elif inside and content and not content.startswith(("#", ";")):
            end = index + 1
    return end


def _insert(lines: list[str], index: int, new: list[str], newline: str) -> None:
    if not lines[index - 1].endswith(newline):
        lines[index - 1] += newline
    lines[index:index] = [line + newline for line in new]
