#!/usr/bin/python
"""Ansible module: a directory that holds exactly these files, judged together before any is put in place."""

from __future__ import annotations

import grp
import os
import pwd
import stat
import tempfile
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.durable import replace_file
from ansible.module_utils.root_file import left

DOCUMENTATION = r"""
module: file_set
short_description: A directory that holds exactly these files
description:
  - Writes those that are missing or different, each in one step, and removes all others.
  - Where a program can judge them it is asked about all of them together first, and nothing is changed when
    it objects.
options:
  path:
    description: The directory; it is made where it is missing.
    type: path
    required: true
  files:
    description: The content of each file, by its name.
    type: dict
    required: true
  owner:
    description: The owner of directory and files.
    type: str
    default: root
  group:
    description: The group of directory and files.
    type: str
    default: root
  mode:
    description: The mode of the files; the directory may be searched by those who may read them.
    type: str
    default: "0644"
  judge:
    description: A command that fails when the files are wrong; it gets their paths as further arguments.
    type: list
    elements: str
    default: []
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_manages:
  description: C(files), the directory and what is in it.
  type: dict
  returned: always
"""

_SEARCH = {0o400: 0o100, 0o040: 0o010, 0o004: 0o001}


def directory_mode(mode: int) -> int:
    """The mode of a directory whose files have this mode: who may read may search, too."""
    return mode | sum(search for read, search in _SEARCH.items() if mode & read)


def present(directory: Path) -> dict[str, str]:
    """What is there, but for hidden files."""
    if not directory.is_dir():
        return {}
    return {
        path.name: path.read_text(encoding="utf-8", errors="replace")
        for path in sorted(directory.iterdir())
        if path.is_file() and not path.name.startswith(".")
    }


def belongs(path: Path, mode: int, owner: tuple[int, int]) -> bool:
    """Whether a file or directory has this mode, owner and group."""
    found = path.stat()
    return stat.S_IMODE(found.st_mode) == mode and (found.st_uid, found.st_gid) == owner


def judged(module: AnsibleModule, wanted: dict[str, str]) -> None:
    """Has the program look at all files, in a place of their own."""
    command = module.params["judge"]
    if not command or not wanted:
        return
    with tempfile.TemporaryDirectory(prefix="deploy-judge-") as place:
        for name, text in wanted.items():
            (Path(place) / name).write_text(text, encoding="utf-8")
        paths = [str(Path(place) / name) for name in sorted(wanted)]
        code, out, err = module.run_command([*command, *paths])
    if code != 0:
        said = (str(out) + str(err)).replace(f"{place}/", "").strip()
        module.fail_json(msg=f"{module.params['path']} is left as it is; {command[0]} says: {said[-2000:]}")


def owner_of(module: AnsibleModule) -> tuple[int, int]:
    """The numbers of owner and group; root's in check mode when a package is yet to make them."""
    try:
        return pwd.getpwnam(module.params["owner"]).pw_uid, grp.getgrnam(module.params["group"]).gr_gid
    except KeyError as problem:
        if module.check_mode:
            return 0, 0
        module.fail_json(msg=str(problem.args[0]))
        raise


def main() -> None:
    """Compare, judge, write."""
    arguments: dict[str, Any] = {
        "path": {"type": "path", "required": True},
        "files": {"type": "dict", "required": True},
        "owner": {"type": "str", "default": "root"},
        "group": {"type": "str", "default": "root"},
        "mode": {"type": "str", "default": "0644"},
        "judge": {"type": "list", "elements": "str", "default": []},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    directory, mode = Path(module.params["path"]), int(module.params["mode"], 8)
    wanted = {str(name): str(text) for name, text in module.params["files"].items()}
    owner, before = owner_of(module), present(directory)
    differing = [
        name
        for name, text in wanted.items()
        if before.get(name) != text or not belongs(directory / name, mode, owner)
    ]
    surplus = sorted(before.keys() - wanted.keys())
    place_differs = not directory.is_dir() or not belongs(directory, directory_mode(mode), owner)
    changed = bool(differing or surplus or place_differs)
    if differing and not module.check_mode:
        judged(module, wanted)
    if changed and not module.check_mode:
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(directory_mode(mode))
        os.chown(directory, *owner)
        for name in differing:
            replace_file(directory / name, wanted[name].encode(), mode, owner)
        for name in surplus:
            (directory / name).unlink()
    module.exit_json(
        changed=changed,
        # Whole contents would fill the journal of every run.
        invocation={"module_args": {**module.params, "files": sorted(wanted)}},
        deploy_manages={"files": left([directory, *(directory / name for name in wanted)])},
        diff=[
            {
                "before": before.get(name, ""),
                "after": wanted.get(name, ""),
                "before_header": str(directory / name),
                "after_header": str(directory / name),
            }
            for name in [*differing, *surplus]
            if before.get(name) != wanted.get(name)
        ],
    )


if __name__ == "__main__":
    main()
