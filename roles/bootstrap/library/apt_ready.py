#!/usr/bin/python
"""Ansible module: a Debian or Ubuntu host on which packages can be installed."""

import os
import time
from pathlib import Path
from typing import Any

from ansible.module_utils import archive_source
from ansible.module_utils.apt_host import AptHost, installed, lists_are_old
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.put_aside import are_units, put_aside, services_of
from ansible.module_utils.quiet_install import forget_left_behind, wanted

DOCUMENTATION = r"""
module: apt_ready
short_description: A Debian or Ubuntu host on which packages can be installed
description:
  - Waits for other package managers, completes an interrupted dpkg run, refreshes missing or old package
    lists and installs python3-apt, which Ansible's own package module needs.
  - A refresh of the lists alone does not count as a change. One that does not get all of them, because a
    server is away, is no failure. They are fetched again after an hour, and at once where a package is
    missing. A warning says what was missed where a signature is the reason, or a package is still missing.
options:
  packages:
    description:
      - Packages that are installed in one go, without starting their daemons. One that the archive does not
        have is left to the role that wants it, and so are all of them in check mode.
    type: list
    elements: str
    default: []
  archive:
    description:
      - Base address of a bundle's packages, below which each distribution and version has a directory, as in
        debian-13. Where it is set it is the only source of packages; else the host's own sources count.
    type: str
    default: ""
  archive_key:
    description: The key that signed the bundle, in ASCII armour.
    type: str
    default: ""
  restore_versions:
    description:
      - Packages as C(name=version) that are older than that, and get this version again; the newest one where
        the archive does not have it any more.
    type: list
    elements: str
    default: []
  put_aside:
    description:
      - Files that lie beside those of other roles and override them. They are moved to
        /var/lib/deploy/put-aside, and services whose units they changed are restarted where they run. MariaDB
        is left to its role, which restarts members of a database one after the other.
    type: list
    elements: str
    default: []
  restart:
    description: Services that run otherwise than their units say, and are restarted.
    type: list
    elements: str
    default: []
  cache_valid_hours:
    description: Lists older than this are refreshed.
    type: int
    default: 24
  lock_timeout:
    description: Seconds to wait for another package manager.
    type: int
    default: 300
  check_mode_prepares:
    description: Whether check mode may refresh the lists and install python3-apt where they are missing.
    type: bool
    default: false
author: [the maintainers of this project]
"""

RETURN = r"""
ansible_facts:
  description: C(deb_packages), the names of the installed packages.
  type: dict
  returned: always
actions:
  description: What was done, in order.
  type: list
  returned: always
deploy_impact:
  description: C(kind), restart or none, C(service) and C(reasons), the files put aside.
  type: dict
  returned: always
deploy_manages:
  description: What is recorded of the host, by kind.
  type: dict
  returned: always
"""

_PACKAGE = "python3-apt"
IN_TURN = {"mariadb": Path("/etc/systemd/system/mariadb.service.d")}
"""Services that one host at a time may be without, with the directory for whose changes their role restarts
them in turn."""


def runs(module: AnsibleModule, service: str) -> bool:
    """Whether a service runs; one that is masked could not even be tried."""
    return bool(module.run_command(["systemctl", "is-active", "--quiet", service])[0] == 0)


def set_right(module: AnsibleModule, host: AptHost) -> dict[str, Any]:
    """Puts aside what overrides others' files, restarts what runs otherwise; returns what that disturbs."""
    paths = [path for path in module.params["put_aside"] if os.path.lexists(path)]
    named = [name.removesuffix(".service") for name in [*services_of(paths), *module.params["restart"]]]
    services = [name for name in dict.fromkeys(named) if runs(module, name)]
    host.actions.extend([f"{path} put aside" for path in paths] if module.check_mode else put_aside(paths))
    if are_units(paths):
        host.actions.append("systemctl daemon-reload")
        if not module.check_mode:
            module.run_command(["systemctl", "daemon-reload"], check_rc=True)
    in_turn = [name for name in services if name in IN_TURN and IN_TURN[name].is_dir()]
    at_once = [name for name in services if name not in in_turn]
    for name in in_turn:
        host.actions.append(f"{name} is left to its role, which restarts one host after the other")
        if not module.check_mode:
            os.utime(IN_TURN[name])
    if at_once:
        host.actions.append(f"systemctl try-restart {' '.join(at_once)}")
        if not module.check_mode:
            # What does not come up may need what a later phase brings, as slurmd its controller: the phase
            # of the service itself starts it, or says why it does not.
            module.run_command(["systemctl", "try-restart", *at_once])
            host.actions += [f"{name} is not up yet" for name in at_once if not runs(module, name)]
    return {"kind": "restart" if services else "none", "service": ", ".join(services), "reasons": paths}


def warn(module: AnsibleModule, missed: list[str], *, is_lacking: bool) -> None:
    """Of missed lists what somebody has to know; a server may be away for good, and nobody lack it."""
    for why in missed:
        if is_lacking or "signature" in why:
            module.warn(f"lists of packages are not all there: {why}")


def main() -> None:
    """Wait, repair, refresh, install: each only where it is needed."""
    arguments: dict[str, Any] = {
        "packages": {"type": "list", "elements": "str", "default": []},
        "archive": {"type": "str", "default": ""},
        "archive_key": {"type": "str", "default": "", "no_log": False},
        "restore_versions": {"type": "list", "elements": "str", "default": []},
        "put_aside": {"type": "list", "elements": "str", "default": []},
        "restart": {"type": "list", "elements": "str", "default": []},
        "cache_valid_hours": {"type": "int", "default": 24},
        "lock_timeout": {"type": "int", "default": 300},
        "check_mode_prepares": {"type": "bool", "default": False},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    if module.get_bin_path("apt-get") is None:
        module.fail_json(msg="this host has no apt-get: supported are Debian and Ubuntu")
    host = AptHost(module)
    # First of all, because they may say what the package manager does.
    impact = set_right(module, host)
    changed = bool(host.actions)
    host.wait_for_locks()
    statuses = host.statuses()
    if broken := host.broken(statuses):
        changed = True
        host.actions.append(f"interrupted dpkg run completed: {' '.join(broken)}")
        if not module.check_mode:
            host.repair()
            statuses = host.statuses()
    if not module.check_mode and forget_left_behind():
        host.actions.append("policy-rc.d of an interrupted installation removed")
    present = installed(statuses)
    looks_only = module.check_mode and not module.params["check_mode_prepares"]
    if looks_only and _PACKAGE not in present:
        module.fail_json(
            msg="check mode cannot preview anything here, because python3-apt is missing; install it "
            "(apt-get install python3-apt), or allow it with bootstrap_check_mode_prepares: true"
        )
    moved = archive_source.settle(
        host.places.root, module.params["archive"], module.params["archive_key"], writes=not module.check_mode
    )
    if moved:
        changed = True
        host.actions.append(f"packages come from {module.params['archive'] or 'the sources of the host'}")
    # In check mode the roles that want the packages say so themselves.
    packages = [] if module.check_mode else module.params["packages"]
    missing = wanted([_PACKAGE, *packages], present)
    is_old = moved or lists_are_old(host.places, time.time(), module.params["cache_valid_hours"])
    may_be_missed = missing and host.places.missed.exists()
    missed = host.refresh() if (is_old or may_be_missed) and not looks_only else []
    if missing and not (module.check_mode and broken) and host.install(missing):
        changed = True
        present = installed(host.statuses())
    warn(module, missed, is_lacking=bool(wanted(missing, present)))
    if module.params["restore_versions"] and host.restore(module.params["restore_versions"]):
        changed = True
    # Opening apt's cache takes a third of a second, asking dpkg a few thousandths: with this fact a role
    # knows without apt that its packages are there.
    module.exit_json(
        changed=changed,
        actions=host.actions,
        deploy_impact=impact,
        ansible_facts={"deb_packages": present},
        # Of the wishes only what there is: the archive may not have the others.
        deploy_manages={
            "packages": [name for name in [_PACKAGE, *module.params["packages"]] if name in set(present)],
            "files": archive_source.paths(module.params["archive"]),
        },
    )


if __name__ == "__main__":
    main()
