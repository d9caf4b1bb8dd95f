#!/usr/bin/python
"""Ansible module: the directory on local disk below which Slurm keeps the private directories of jobs.

The module file would not do: it makes the directory on a network file system, too. Which one is mounted
there is known only now, after the role network_mounts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.mount_table import NETWORK_KINDS, Mount, containing, mounted
from ansible.module_utils.root_file import give_to_root, left

DOCUMENTATION = r"""
module: scratch_directory
short_description: The directory on local disk below which Slurm keeps the private directories of jobs
description:
  - Makes the directory, for root alone to write to. Refuses one that is on a network file system, or inside
    of a directory that jobs have of their own, which would hide it from itself.
options:
  path:
    description: The directory.
    type: path
    required: true
  private:
    description: The directories that jobs have of their own.
    type: list
    elements: path
    default: []
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_manages:
  description: What the module manages on the machine.
  type: dict
  returned: always
"""

_MODE = 0o755


def problem(path: str, private: Sequence[str], mounts: Sequence[Mount]) -> str:
    """Why a directory cannot hold the private directories of jobs; empty when it can."""
    for name in private:
        if PurePosixPath(path).is_relative_to(name):
            return f"{path} is inside of {name}, which every job has of its own"
    mount = containing(path, mounts)
    if mount and mount.kind in NETWORK_KINDS:
        return (
            f"{path} is on a network file system ({mount.kind}, {mount.source}), where nodes would take each "
            "other's directories"
        )
    return ""


def main() -> None:
    """Refuse what cannot work, else make the directory."""
    arguments: dict[str, Any] = {
        "path": {"type": "path", "required": True},
        "private": {"type": "list", "elements": "path", "default": []},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    path = Path(module.params["path"])
    if reason := problem(str(path), module.params["private"], mounted()):
        module.fail_json(msg=f"{reason}. Set scratch_directory to a directory on a local disk")
    missing = not path.is_dir()
    if missing and not module.check_mode:
        path.mkdir(parents=True)
    changed = give_to_root(module, path, _MODE) or missing
    module.exit_json(changed=changed, deploy_manages={"files": left([path])})


if __name__ == "__main__":
    main()
