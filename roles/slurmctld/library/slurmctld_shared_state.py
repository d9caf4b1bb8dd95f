#!/usr/bin/python
"""Ansible module: what tells whether a directory is the same on several controllers."""

import shutil
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.slurm_state import as_slurm

DOCUMENTATION = r"""
module: slurmctld_shared_state
short_description: Tell whether a directory is the same on several controllers
description:
  - Makes the directory, for the user slurm, and a file in it that tells it from a copy; as that user where
    root is nobody. Answers with what is the same wherever the same directory is mounted.
options:
  directory:
    description: StateSaveLocation.
    type: path
    required: true
  same_as:
    description: What the directory of another controller is. Another directory fails the module.
    type: str
    default: ""
author: [the maintainers of this project]
"""

RETURN = r"""
identity:
  description: The number of the file in its file system, and when it was made. Empty where it is not there.
  type: str
  returned: always
"""

_NAME = "deploy_shared"


def main() -> None:
    """Look, and make what is missing."""
    spec: dict[str, Any] = {
        "directory": {"type": "path", "required": True},
        "same_as": {"type": "str", "default": ""},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    directory = Path(module.params["directory"])
    try:
        changed = _make(directory, check_mode=module.check_mode)
        with as_slurm():
            file = directory / _NAME
            found = file.stat() if file.exists() else None
    except (OSError, KeyError) as problem:
        module.fail_json(
            msg=f"the user slurm cannot use {directory}, the state of the controllers: {problem}"
        )
    identity = f"{found.st_ino} {found.st_mtime_ns}" if found else ""
    other = module.params["same_as"]
    if other and identity and identity != other:
        module.fail_json(
            msg=f"{directory} is another directory than on the first controller: it has to be on storage "
            "that all controllers mount (slurmctld_state_save_location)"
        )
    module.exit_json(changed=changed, identity=identity)


def _make(directory: Path, *, check_mode: bool) -> bool:
    """Whether the file was, or would be, made; raises KeyError where the user slurm is not there yet."""
    if check_mode:
        return not directory.is_dir()
    if not directory.is_dir():
        # Of root's where root may; then it is given away.
        directory.mkdir(parents=True)
        shutil.chown(directory, "slurm", "slurm")
    with as_slurm():
        try:
            (directory / _NAME).touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            return False
    return True


if __name__ == "__main__":
    main()
