#!/usr/bin/python
"""Ansible module: the packages in some .deb files are installed, in the versions that the files have.

The module apt judges each file by itself: one that needs another of them, as enroot+caps does, it refuses.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: deb_current
short_description: The packages in some .deb files are installed, in the versions that the files have
description:
  - Compares files and installed packages without opening apt's cache, and installs what differs with its
    dependencies in one go. An older version replaces a newer one.
options:
  files:
    description: The .deb files on the host.
    type: list
    elements: path
    required: true
  pending:
    description: Whether a task of this run changes a file. Only check mode needs it, where files stay old.
    type: bool
    default: false
  lock_timeout:
    description: Seconds to wait for another package manager.
    type: int
    default: 300
author: [the maintainers of this project]
"""

RETURN = r"""
installed:
  description: What was installed, as package=version.
  type: list
  returned: always
deploy_manages:
  description: C(packages), the packages that the files hold.
  type: dict
  returned: always
"""

Package = tuple[str, str]
"""Name and version."""

_SHOW = "${db:Status-Abbrev}\t${Package}\t${Version}\n"


def parse_fields(text: str) -> Package:
    """Name and version from the output of ``dpkg-deb --field FILE Package Version``."""
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    return fields["Package"], fields["Version"]


def parse_installed(text: str) -> set[Package]:
    """The wholly installed packages in lines of status, name and version."""
    rows = (line.split("\t") for line in text.splitlines())
    return {(row[1], row[2]) for row in rows if row[0].strip() == "ii"}


def main() -> None:
    """Compare, install."""
    arguments: dict[str, Any] = {
        "files": {"type": "list", "elements": "path", "required": True},
        "pending": {"type": "bool", "default": False},
        "lock_timeout": {"type": "int", "default": 300},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    there = [name for name in module.params["files"] if Path(name).is_file()]
    if len(there) < len(module.params["files"]):
        if module.check_mode:
            module.exit_json(changed=True, installed=[], deploy_manages={"packages": []})
        module.fail_json(msg=f"no such file: {' '.join(set(module.params['files']) - set(there))}")

    def fields(name: str) -> Package:
        command = ["dpkg-deb", "--field", name, "Package", "Version"]
        return parse_fields(module.run_command(command, check_rc=True)[1])

    packages = {name: fields(name) for name in there}
    names = [package for package, _ in packages.values()]
    shown = module.run_command(["dpkg-query", "--show", f"--showformat={_SHOW}", *names])[1] if names else ""
    present = parse_installed(shown)
    missing = [name for name, package in packages.items() if package not in present]
    if missing and not module.check_mode:
        command = ["apt-get", "--yes", "--quiet", "--no-install-recommends", "--allow-downgrades"]
        wait = f"DPkg::Lock::Timeout={module.params['lock_timeout']}"
        keep = ["-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold"]
        code, out, err = module.run_command(
            [*command, "-o", wait, *keep, "install", *missing],
            environ_update={"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"},
        )
        if code != 0:
            module.fail_json(msg=f"apt-get cannot install {' '.join(missing)}: {(out + err).strip()[-1500:]}")
    module.exit_json(
        changed=bool(missing) or (module.check_mode and module.params["pending"]),
        installed=["=".join(packages[name]) for name in missing],
        deploy_manages={"packages": names},
    )


if __name__ == "__main__":
    main()
