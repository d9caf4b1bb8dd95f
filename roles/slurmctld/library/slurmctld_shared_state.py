#!/usr/bin/python
"""Ansible module: makes sure that a directory is the same on several controllers."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.slurm_state import MARK, as_slurm

DOCUMENTATION = r"""
module: slurmctld_shared_state
short_description: Make sure that a directory is the same on several controllers
description:
  - The first controller makes the directory, for the user slurm, and a file in it with the file's own
    number. On another one the file has to be there, with that number. It is looked at as that user, because
    root may be nobody there.
  - Neither that one nor a copy of it is on a host that had one, as its guard says, where the storage is not
    mounted. Then none is made, and none taken.
  - In check mode nothing is refused. An earlier phase may be about to mount the storage, and the first
    controller to take a copy for its own.
options:
  directory:
    description: StateSaveLocation.
    type: path
    required: true
  makes:
    description: Whether this is the first controller.
    type: bool
    required: true
  guard:
    description: >-
      The file by which systemd guards the start of slurmctld here, with the directory and the number by which
      this host knew it last; none where the first controller says in this run which one is right.
    type: path
    default: ""
author: [the maintainers of this project]
"""

RETURN = r"""
mark:
  description: The number of the file; 0 in check mode where it is not there yet.
  type: int
  returned: always
"""


def main() -> None:
    """Look, and make what is missing."""
    spec = {
        "directory": {"type": "path", "required": True},
        "makes": {"type": "bool", "required": True},
        "guard": {"type": "path", "default": ""},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    directory, makes = Path(module.params["directory"]), module.params["makes"]
    try:
        differs = not has_mark(directory) or not is_whole(directory)
        known = known_number(module.params["guard"], directory)
        if not module.check_mode and is_another(directory, known):
            refuse_another(module, directory)
        if differs and makes and not module.check_mode:
            mark(directory)
        found = number(directory)
    except (OSError, KeyError) as problem:
        if module.check_mode:
            module.exit_json(changed=makes, mark=0)
        module.fail_json(
            msg=f"the user slurm cannot use {directory}, the state of the controllers: {problem}"
        )
    if differs and not makes and not module.check_mode:
        refuse(module, directory)
    module.exit_json(changed=differs and makes, mark=found)


def has_mark(directory: Path) -> bool:
    """Whether the file is there; raises KeyError where the user slurm is not."""
    with as_slurm():
        return (directory / MARK).exists()


def is_whole(directory: Path) -> bool:
    """Whether the file is the one that was made, and no copy of it."""
    with as_slurm():
        path = directory / MARK
        return path.read_text().strip() == str(path.stat().st_ino)


def number(directory: Path) -> int:
    """That of the file; 0 where it is not there."""
    with as_slurm():
        path = directory / MARK
        return path.stat().st_ino if path.exists() else 0


def known_number(guard: str, directory: Path) -> int:
    """By which this host knew the directory; 0 where it did not."""
    text = Path(guard).read_text(encoding="utf-8") if guard and Path(guard).is_file() else ""
    found = re.search(rf"^ExecStartPre=\S+ {re.escape(str(directory))} (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else 0


def is_another(directory: Path, known: int) -> bool:
    """Whether it is neither the one that this host knew by that number, nor a copy of it."""
    if not known:
        return False
    # A state without the mark is that of a time before the storage was mounted over it.
    return not has_mark(directory) or (is_whole(directory) and number(directory) != known)


def mark(directory: Path) -> None:
    """Makes directory and file."""
    if not directory.is_dir():
        directory.mkdir(parents=True)
        shutil.chown(directory, "slurm", "slurm")
    with as_slurm():
        path = directory / MARK
        path.touch(mode=0o600)
        path.write_text(f"{path.stat().st_ino}\n")


def refuse(module: AnsibleModule, directory: Path) -> None:
    """Fails the module."""
    module.fail_json(
        msg=f"{directory} is another directory than on the first controller: it has to be on storage that "
        "all controllers mount (slurmctld_state_save_location). Where the first one is lost for good, and "
        "the state was copied here: the same without its line in [slurm-master]"
    )


def refuse_another(module: AnsibleModule, directory: Path) -> None:
    """Fails the module."""
    module.fail_json(
        msg=f"{directory} is another directory than when deploy was here, and slurmctld would lead without "
        "the queue of that one: mount it there, then the same again. If this one shall be the state from now "
        f"on: rm {module.params['guard']}, then the same again"
    )


if __name__ == "__main__":
    main()
