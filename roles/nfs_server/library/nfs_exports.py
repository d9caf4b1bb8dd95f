#!/usr/bin/python
"""Ansible module: directories that the kernel's NFS server exports, and that it knows of.

A template and a reload would not do: nfs-server's reload hides what exportfs complains of, and a run that
was cut off between both would leave clients without the new file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.exports_file import exports_text, is_known_otherwise, problems
from ansible.module_utils.root_file import keep, left, text_of

DOCUMENTATION = r"""
module: nfs_exports
short_description: Directories that the kernel's NFS server exports, and that it knows of
description:
  - Writes the exports file, makes directories that are not there, and has the server export what it and
    other exports files say, and nothing else. Clients go on; nothing restarts.
  - Refuses clients that are not an address, a network or a host name.
options:
  exports:
    description: The directories; see the role's argument specification for their keys.
    type: list
    elements: dict
    required: true
  clients:
    description: Addresses to which all of them are exported.
    type: list
    elements: str
    default: []
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_impact:
  description: How C(deploy plan) knows what a change does.
  type: dict
  returned: always
deploy_manages:
  description: What the module manages on the machine.
  type: dict
  returned: always
"""

_FILE = Path("/etc/exports.d/deploy.exports")
_KNOWN = Path("/var/lib/nfs/etab")


def is_newer(file: Path, known: Path) -> bool:
    """Whether a file was written after what the server knows."""
    if not file.exists():
        return False
    return not known.exists() or file.stat().st_mtime > known.stat().st_mtime


def known(module: AnsibleModule) -> str:
    """What the server exports, as `exportfs -s` says; empty where there is none yet."""
    program = module.get_bin_path("exportfs", opt_dirs=["/usr/sbin", "/sbin"])
    return str(module.run_command([program, "-s"])[1]) if program else ""


def main() -> None:
    """Refuse, make directories, write, and tell the server."""
    option = {
        "path": {"type": "path", "required": True},
        "mount": {"type": "str"},
        "clients": {"type": "list", "elements": "str"},
        "read_only": {"type": "bool"},
        "root_squash": {"type": "bool"},
        "options": {"type": "list", "elements": "str"},
    }
    arguments: dict[str, Any] = {
        "exports": {"type": "list", "elements": "dict", "required": True, "options": option},
        "clients": {"type": "list", "elements": "str", "default": []},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    exports, clients = module.params["exports"], module.params["clients"]
    if found := problems(exports, clients):
        module.fail_json(msg="nfs_server_exports: " + "; ".join(found))
    before = text_of(_FILE)
    after = exports_text(exports, clients)
    missing = [Path(entry["path"]) for entry in exports if not Path(entry["path"]).is_dir()]
    served = known(module)
    reload = after != before or is_newer(_FILE, _KNOWN) or is_known_otherwise(served, exports, clients)
    kept = keep(module, _FILE, after)
    if not module.check_mode:
        for path in missing:
            path.mkdir(mode=0o755, parents=True)
        # Also takes away what somebody exports by hand, of which no file knows.
        code, out, err = module.run_command(["exportfs", "-r"])
        # It complains of a directory that cannot be exported and yet ends with 0 in some versions.
        if code != 0 or "does not support NFS export" in err:
            module.fail_json(msg=f"exportfs -r: {(err or out).strip()}")
        reload = reload or known(module) != served
    module.exit_json(
        changed=kept or reload or bool(missing),
        diff={"before_header": str(_FILE), "after_header": str(_FILE), "before": before, "after": after},
        deploy_impact={"kind": "reconfigure" if reload else "none", "service": "nfs-server", "reasons": []},
        deploy_manages={"files": left([_FILE])},
    )


if __name__ == "__main__":
    main()
