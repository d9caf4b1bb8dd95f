#!/usr/bin/python
"""Ansible module: files of root's and their directories, all that a task has of them in one round trip."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.root_file import give_to_root, keep, left, text_of

DOCUMENTATION = r"""
module: root_files
short_description: Files of root's and their directories, in one round trip
description:
  - What C(file), C(copy) and C(template) do in a task each, one item after the other. A role that has
    several files, and directories for them, takes a host one process and one answer, however many they are.
  - A file is replaced at once, so that nobody reads half of it.
options:
  directories:
    description: Directories that anybody may search.
    type: list
    elements: path
    default: []
  files:
    description: The content of each file, by its path; its directory is made where it is missing.
    type: dict
    default: {}
  modes:
    description: The mode of each file that has another one than 0644, by its path.
    type: dict
    default: {}
  keeps:
    description: Those whose content stays when they are there; where one is a link it is followed.
    type: list
    elements: path
    default: []
  absent:
    description: Files that are not to be there.
    type: list
    elements: path
    default: []
  none_other:
    description: Patterns of paths, of which those that are not in C(files) are removed.
    type: list
    elements: str
    default: []
  reloads_systemd:
    description: Whether systemd reads its units again after a change; also after one whose run was cut off.
    type: bool
    default: false
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_manages:
  description: C(files), the directories and files.
  type: dict
  returned: always
"""

_TO_BE_READ = Path("/run/deploy/units-changed")
"""There while systemd has not read what was written; until the next boot, which reads everything anew."""


def keep_directory(module: AnsibleModule, path: Path) -> bool:
    """Has a directory be there and root's; returns whether anything differs, also in check mode."""
    differs = not path.is_dir()
    if differs and not module.check_mode:
        path.mkdir(mode=0o755, parents=True)
    return give_to_root(module, path, 0o755) or differs


def keep_file(module: AnsibleModule, path: Path, text: str, mode: int) -> bool:
    """Has a file be as it is declared; returns whether anything differs, also in check mode."""
    is_led_elsewhere = path.is_symlink()
    if not module.check_mode:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        if is_led_elsewhere:
            path.unlink()
    return keep(module, path, text, mode) or is_led_elsewhere


def surplus(absent: list[str], patterns: list[str], wanted: set[Path]) -> list[Path]:
    """The files that are there and are not to be."""
    listed = [Path(name) for name in absent]
    matching = [path for pattern in patterns for path in sorted(Path("/").glob(pattern.lstrip("/")))]
    return [path for path in [*listed, *matching] if os.path.lexists(path) and path not in wanted]


def main() -> None:
    """Compare, write, remove, and have systemd read its units."""
    names: dict[str, Any] = {"type": "list", "elements": "path", "default": []}
    arguments: dict[str, Any] = {
        "directories": names,
        "files": {"type": "dict", "default": {}},
        "modes": {"type": "dict", "default": {}},
        "keeps": names,
        "absent": names,
        "none_other": {"type": "list", "elements": "str", "default": []},
        "reloads_systemd": {"type": "bool", "default": False},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    given = module.params
    directories = [Path(name) for name in given["directories"]]
    wanted = {Path(name): str(text) for name, text in given["files"].items()}
    modes = {path: int(str(given["modes"].get(str(path), "0644")), 8) for path in wanted}
    for path in [path for path in wanted if str(path) in given["keeps"]]:
        place, text, mode = path.resolve(), wanted.pop(path), modes.pop(path)
        wanted[place], modes[place] = text_of(place) if place.exists() else text, mode
    too_many = surplus(given["absent"], given["none_other"], {*wanted})
    before = {path: text_of(path) for path in [*wanted, *too_many]}
    differing = [path for path, text in wanted.items() if not path.exists() or before[path] != text]
    reloads = given["reloads_systemd"] and not module.check_mode
    if reloads and (differing or too_many):
        _TO_BE_READ.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _TO_BE_READ.touch()
    changes = [keep_directory(module, path) for path in directories]
    changes += [keep_file(module, path, text, modes[path]) for path, text in wanted.items()]
    if not module.check_mode:
        for path in too_many:
            path.unlink()
    if reloads and _TO_BE_READ.exists():
        module.run_command(["systemctl", "daemon-reload"], check_rc=True)
        _TO_BE_READ.unlink()
    gone = dict.fromkeys([*given["absent"], *map(str, too_many)])
    module.exit_json(
        changed=any(changes) or bool(too_many),
        # Whole contents would fill the journal of every run.
        invocation={"module_args": {**given, "files": [*given["files"]]}},
        deploy_manages={"files": {**gone, **left([*directories, *wanted])}},
        diff=[
            {
                "before": before[path],
                "after": wanted.get(path, ""),
                "before_header": str(path),
                "after_header": str(path),
            }
            for path in [*differing, *too_many]
        ],
    )


if __name__ == "__main__":
    main()
