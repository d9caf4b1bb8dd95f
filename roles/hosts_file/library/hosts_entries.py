#!/usr/bin/python
"""Ansible module: the names of a cluster's hosts in /etc/hosts."""

import ipaddress
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hosts_block import BEGIN, BLOCK, END, INSTALLER_LOOPBACK
from ansible.module_utils.root_file import keep, left, text_of

DOCUMENTATION = r"""
module: hosts_entries
short_description: The names of a cluster's hosts in /etc/hosts
description:
  - Keeps one marked block in /etc/hosts, removes the installer's loopback line for a name of that block, and
    stops cloud-init from writing the file anew at the next boot.
  - What the machine's user-data or its vendor says to cloud-init wins over every file on its disk. Where that
    manages the file, nothing here keeps it, which is said.
options:
  entries:
    description: Addresses and their names.
    type: list
    elements: dict
    required: true
    suboptions:
      address:
        description: An IPv4 or IPv6 address.
        type: str
        required: true
      names:
        description: Its names, the canonical one first.
        type: list
        elements: str
        required: true
  remove_loopback_name:
    description: Whether a line 127.0.1.1 with one of the names is removed.
    type: bool
    default: true
  stop_cloud_init:
    description: Whether cloud-init, where installed, is told to leave the file alone.
    type: bool
    default: true
  unsafe_writes:
    description: Whether the file may be written in place where it cannot be replaced.
    type: bool
    default: false
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_pending:
  description: What takes the names away at the next boot.
  type: list
  returned: always
"""

_HOSTS = Path("/etc/hosts")
_CLOUD_INIT = Path("/etc/cloud/cloud.cfg.d")
_CLOUD_INIT_TEXT = "# Kept by deploy: /etc/hosts names the hosts of the cluster.\nmanage_etc_hosts: false\n"
_CLOUD_INIT_IS_OFF = Path("/etc/cloud/cloud-init.disabled")
_INSTANCE = Path("/var/lib/cloud/instance")
_STRONGER = ("cloud-config.txt", "vendor-cloud-config.txt", "vendor2-cloud-config.txt")
"""What user-data and the vendor say, as cloud-init keeps it (cloudinit/helpers.py, ConfigMerger)."""
_MANAGES = re.compile(
    r"^manage_etc_hosts:[ \t]*['\"]?(?!(?:false|no|off|null)\b|['\"~#\n])(\w+)", re.IGNORECASE | re.MULTILINE
)
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?")


def invalid(entries: Sequence[Mapping[str, Any]]) -> str | None:
    """What is wrong with the entries: an address that is none, a name that would break the file."""
    for entry in entries:
        try:
            ipaddress.ip_address(entry["address"])
        except ValueError:
            return f"{entry['address']!r} is not an IP address"
        if not entry["names"]:
            return f"{entry['address']} has no name"
        for name in entry["names"]:
            if not _NAME.fullmatch(name):
                return f"{name!r}, a name of {entry['address']}, is not a host name"
    return None


def _order(entry: Mapping[str, Any]) -> tuple[int, int, list[str]]:
    address = ipaddress.ip_address(entry["address"])
    return address.version, int(address), entry["names"]


def block(entries: Sequence[Mapping[str, Any]]) -> str:
    """The marked block, in the order of addresses; empty without entries."""
    lines = [f"{entry['address']} {' '.join(entry['names'])}\n" for entry in sorted(entries, key=_order)]
    return f"{BEGIN}\n{''.join(lines)}{END}\n" if lines else ""


def updated(text: str, entries: Sequence[Mapping[str, Any]], *, remove_loopback_name: bool) -> str:
    """The file's new text: the block replaced where it is, else added at the end; a copy of it goes."""
    if text and not text.endswith("\n"):
        text += "\n"
    new = block(entries)
    if found := BLOCK.search(text):
        text = text[: found.start()] + new + BLOCK.sub("", text[found.end() :])
    else:
        text += new
    if remove_loopback_name:
        names = {name for entry in entries for name in entry["names"]}
        text = "".join(line for line in text.splitlines(keepends=True) if not _loopback_line(line, names))
    return text


def _loopback_line(line: str, names: set[str]) -> bool:
    words = line.partition("#")[0].split()
    return bool(words) and words[0] == INSTALLER_LOOPBACK and not names.isdisjoint(words[1:])


def rewritten_at_boot(instance: Path) -> list[str]:
    """What has cloud-init write the file anew at the next boot, whatever its configuration says."""
    said = [(path, _MANAGES.search(text_of(path))) for path in (instance / name for name in _STRONGER)]
    return [
        f"{_HOSTS}: cloud-init writes it anew at the next boot, because the machine's user-data or "
        f"vendor says manage_etc_hosts: {manages[1]} ({path}), which wins. Take it out there, or "
        f"switch cloud-init off where it has done its work: touch {_CLOUD_INIT_IS_OFF}"
        for path, manages in said
        if manages
    ]


def main() -> None:
    """Compare both files with what they should say, and write those that differ."""
    arguments: dict[str, Any] = {
        "entries": {
            "type": "list",
            "elements": "dict",
            "required": True,
            "options": {
                "address": {"type": "str", "required": True},
                "names": {"type": "list", "elements": "str", "required": True},
            },
        },
        "remove_loopback_name": {"type": "bool", "default": True},
        "stop_cloud_init": {"type": "bool", "default": True},
        "unsafe_writes": {"type": "bool", "default": False},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    entries = module.params["entries"]
    if (problem := invalid(entries)) is not None:
        module.fail_json(msg=f"hosts_file_entries: {problem}")
    before = {_HOSTS: text_of(_HOSTS)}
    after = {
        _HOSTS: updated(before[_HOSTS], entries, remove_loopback_name=module.params["remove_loopback_name"])
    }
    pending: list[str] = []
    if entries and module.params["stop_cloud_init"] and _CLOUD_INIT.is_dir():
        config = _CLOUD_INIT / "99-hosts-file.cfg"
        before[config] = text_of(config)
        after[config] = _CLOUD_INIT_TEXT
        pending = [] if _CLOUD_INIT_IS_OFF.exists() else rewritten_at_boot(_INSTANCE)
    differing = [path for path in after if after[path] != before[path]]
    changed = False
    for path, text in after.items():
        changed |= keep(module, path, text, unsafe_writes=module.params["unsafe_writes"])
    module.exit_json(
        changed=changed,
        deploy_manages={"files": left(after)},
        deploy_pending=pending,
        diff=[
            {
                "before": before[path],
                "after": after[path],
                "before_header": str(path),
                "after_header": str(path),
            }
            for path in differing
        ],
    )


if __name__ == "__main__":
    main()
