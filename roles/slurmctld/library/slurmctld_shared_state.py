#!/usr/bin/python
"""Ansible module: makes sure that a directory is the same on several controllers."""

import shutil
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.slurm_state import as_slurm

DOCUMENTATION = r"""
module: slurmctld_shared_state
short_description: Make sure that a directory is the same on several controllers
description:
  - The first controller makes the directory, for the user slurm, and a file in it with the file's own
    number. On another one the file has to be there, with that number. It is looked at as that user, because
    root may be nobody there. In check mode a file that is not there yet is nothing wrong.
options:
  directory:
    description: StateSaveLocation.
    type: path
    required: true
  makes:
    description: Whether this is the first controller.
    type: bool
    required: true
author: [the maintainers of this project]
"""

RETURN = r"""
mark:
  description: The number of the file; 0 in check mode where it is not there yet.
  type: int
  returned: always
"""

_NAME = "deploy_shared"


def main() -> None:
    """Look, and make what is missing."""
    spec = {
        "directory": {"type": "path", "required": True},
        "makes": {"type": "bool", "required": True},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    directory, makes = Path(module.params["directory"]), module.params["makes"]
    try:
        missing = not has_mark(directory)
        differs = missing or not is_whole(directory)
        if differs and makes and not module.check_mode:
            mark(directory)
        found = number(directory)
    except (OSError, KeyError) as problem:
        module.fail_json(
            msg=f"the user slurm cannot use {directory}, the state of the controllers: {problem}"
        )
    if differs and not makes and not (missing and module.check_mode):
        refuse(module, directory)
    module.exit_json(changed=differs and makes, mark=found)


def has_mark(directory: Path) -> bool:
    """Whether the file is there; raises KeyError where the user slurm is not."""
    with as_slurm():
        return (directory / _NAME).exists()


def is_whole(directory: Path) -> bool:
    """Whether the file is the one that was made, and no copy of it."""
    with as_slurm():
        path = directory / _NAME
        return path.read_text().strip() == str(path.stat().st_ino)


def number(directory: Path) -> int:
    """That of the file; 0 where it is not there."""
    with as_slurm():
        path = directory / _NAME
        return path.stat().st_ino if path.exists() else 0


def mark(directory: Path) -> None:
    """Makes directory and file."""
    if not directory.is_dir():
        directory.mkdir(parents=True)
        shutil.chown(directory, "slurm", "slurm")
    with as_slurm():
        path = directory / _NAME
        path.touch(mode=0o600)
        path.write_text(f"{path.stat().st_ino}\n")


def refuse(module: AnsibleModule, directory: Path) -> None:
    """Fails the module."""
    module.fail_json(
        msg=f"{directory} is another directory than on the first controller: it has to be on storage that "
        "all controllers mount (slurmctld_state_save_location). Where the first one is lost for good, and "
        "the state was copied here: the same without its line in [slurm-master]"
    )


if __name__ == "__main__":
    main()
