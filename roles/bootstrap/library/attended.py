#!/usr/bin/python
"""Ansible module: packages and services that nothing replaces or restarts behind the admins' back."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible.module_utils.attended_texts import (
    NEEDRESTART_RESTARTS,
    apt_text,
    attended,
    needrestart_text,
    objections,
)
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.root_file import keep, text_of

DOCUMENTATION = r"""
module: attended
short_description: Packages and services that nothing replaces or restarts behind the admins' back
description:
  - Tells unattended-upgrades and needrestart to leave them alone, whether they are installed or not, and asks
    apt and needrestart's own configuration whether another file says otherwise.
options:
  packages:
    description: Patterns for the beginning of names of packages; none means that the files are removed.
    type: list
    elements: str
    default: []
  services:
    description: Patterns for the beginning of names of services.
    type: list
    elements: str
    default: []
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_manages:
  description: The files.
  type: dict
  returned: always
deploy_pending:
  description: What another file of apt's or needrestart's takes back.
  type: list
  returned: always
"""

# Read last, each.
_APT = Path("/etc/apt/apt.conf.d/99deploy-attended")
_NEEDRESTART = Path("/etc/needrestart/conf.d/zz-deploy.conf")
_CONFIGURATION = Path("/etc/needrestart/needrestart.conf")
_UNITS = (Path("/etc/systemd/system"), Path("/usr/lib/systemd/system"), Path("/lib/systemd/system"))
_SECONDS = "10"


def needrestart_objections(
    module: AnsibleModule, services: list[str], configuration: Path = _CONFIGURATION
) -> Iterator[str]:
    """What needrestart's files say otherwise, each of which may take back what another says.

    They are programs, which needrestart itself runs as root; here only those that root alone can write are.
    """
    perl = module.get_bin_path("perl")
    if not services or perl is None or not configuration.exists():
        return
    parts = [configuration, configuration.parent / "conf.d", *configuration.parent.glob("conf.d/*.conf")]
    if loose := [str(path) for path in parts if path.exists() and not _is_roots(path)]:
        yield f"needrestart's settings are not judged: others than root may write {', '.join(loose)}"
        return
    units = [path.name for place in _UNITS for path in place.glob("*.service")]
    names = attended(services, units)
    command = ["timeout", _SECONDS, perl, "-e", NEEDRESTART_RESTARTS, str(configuration), *names]
    code, out, problem = module.run_command(command, environ_update={"LC_ALL": "C"})
    if code:
        reason = " ".join(problem.split()) or f"exit code {code}"
        yield f"needrestart's settings cannot be read from {configuration}: {reason}"
    elif out.split():
        yield (
            f"needrestart may restart {', '.join(out.split())} behind deploy's back; {configuration} or a "
            f"file in {configuration.parent / 'conf.d'} says so"
        )


def _is_roots(path: Path) -> bool:
    """Whether root alone may write it."""
    found = path.stat()
    return found.st_uid == 0 and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def main() -> None:
    """Compare, write, and ask apt what holds."""
    listed: dict[str, Any] = {"type": "list", "elements": "str", "default": []}
    module = AnsibleModule(argument_spec={"packages": listed, "services": listed}, supports_check_mode=True)
    packages, services = module.params["packages"], module.params["services"]
    wanted = {
        _APT: apt_text(packages) if packages else "",
        _NEEDRESTART: needrestart_text(services) if services else "",
    }
    before = {path: text_of(path) for path in wanted}
    changed = False
    for path, text in wanted.items():
        if text:
            if not module.check_mode:
                path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            changed |= keep(module, path, text)
        elif path.exists():
            changed = True
            if not module.check_mode:
                path.unlink()
    pending = []
    if not (module.check_mode and changed):
        dump = module.run_command(["apt-config", "dump"], check_rc=True)[1]
        pending = [
            f"unattended-upgrades may act behind deploy's back: {what}; a later file in {_APT.parent} or "
            f"{_APT.parents[1] / 'apt.conf'} says so"
            for what in objections(dump, packages)
        ]
        pending += needrestart_objections(module, services)
    module.exit_json(
        changed=changed,
        deploy_manages={"files": [str(path) for path, text in wanted.items() if text]},
        deploy_pending=pending,
        diff=[
            {
                "before": before[path],
                "after": text,
                "before_header": str(path),
                "after_header": str(path),
            }
            for path, text in wanted.items()
            if before[path] != text
        ],
    )


if __name__ == "__main__":
    main()
