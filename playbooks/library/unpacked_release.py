#!/usr/bin/python
"""Ansible module: a release as its project publishes it, unpacked from archives whose checksums are known."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.durable import keep_names
from ansible.module_utils.root_file import left

DOCUMENTATION = r"""
module: unpacked_release
short_description: A release as its project publishes it, unpacked from archives
description:
  - Unpacks archives, each into a directory of its own, for root alone to change and everybody to read.
    Nothing of what is in them runs.
  - A release is never changed. Other archives make another one beside it, and the path, which is a link,
    points there in the end; the one before stays for what runs from it.
options:
  path:
    description: Where it is found.
    type: path
    required: true
  archives:
    description: C(file), the archive on the host, and C(directory), where in the release it is unpacked.
    type: list
    elements: dict
    required: true
  pending:
    description: Whether a task of this run changes the archives. Only check mode needs it.
    type: bool
    default: false
author: [the maintainers of this project]
"""

RETURN = r"""
release:
  description: The directory that the path points to.
  type: str
  returned: always
deploy_manages:
  description: C(files), what says that the release is whole.
  type: dict
  returned: always
"""

_COMPLETE = "complete"
_LAST_LINES = 8


class Release:
    """What the path should be."""

    def __init__(self, module: AnsibleModule) -> None:
        self._module = module
        self.path = Path(module.params["path"])
        self._archives = [(Path(one["file"]), str(one["directory"])) for one in module.params["archives"]]

    def are_there(self) -> bool:
        """Whether all archives are."""
        return all(file.exists() for file, _ in self._archives)

    def place(self) -> Path:
        """The directory for these archives."""
        said = hashlib.sha256()
        for file, directory in self._archives:
            said.update(f"{directory} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
        return self.path.with_name(f"{self.path.name}-{said.hexdigest()[:12]}")

    def is_current(self, place: Path) -> bool:
        """Whether the path points to a whole release."""
        is_link = self.path.is_symlink() and self.path.readlink() == Path(place.name)
        return is_link and (place / _COMPLETE).exists()

    def unpack(self, place: Path) -> None:
        """Fills the directory, then points there."""
        before = self.path.readlink().name if self.path.is_symlink() else ""
        if not (place / _COMPLETE).exists():
            if place.exists():
                shutil.rmtree(place)
            for file, directory in self._archives:
                into = place / directory
                into.mkdir(parents=True)
                self._run(
                    *("tar", "--extract", "--no-same-owner", "--no-same-permissions", "--strip-components=1"),
                    *("--file", str(file), "--directory", str(into)),
                )
            os.sync()
            (place / _COMPLETE).touch(mode=0o644)
        link = self.path.with_name(f".{self.path.name}.new")
        link.unlink(missing_ok=True)
        link.symlink_to(place.name)
        link.replace(self.path)
        keep_names(self.path.parent)
        for other in self.path.parent.glob(f"{self.path.name}-*"):
            if other.name not in {before, place.name}:
                shutil.rmtree(other)
            elif other != place:
                # Its files stay for programs that run; as a release it is gone.
                (other / _COMPLETE).unlink(missing_ok=True)

    def _run(self, *command: str) -> None:
        # Users have to read what root unpacks.
        code, out, said = self._module.run_command([*command], umask=0o022, cwd="/")
        if code != 0:
            last = "\n".join((said or out).strip().splitlines()[-_LAST_LINES:])
            self._module.fail_json(msg=f"{command[0]} ends with exit code {code}: {last}")


def main() -> None:
    """Run the module."""
    arguments: dict[str, Any] = {
        "path": {"type": "path", "required": True},
        "archives": {"type": "list", "elements": "dict", "required": True},
        "pending": {"type": "bool", "default": False},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    os.umask(0o022)
    release = Release(module)
    if module.check_mode and (module.params["pending"] or not release.are_there()):
        module.exit_json(changed=True, release="", deploy_manages={})
    place = release.place()
    is_current = release.is_current(place)
    if not is_current and not module.check_mode:
        release.unpack(place)
    module.exit_json(
        changed=not is_current, release=str(place), deploy_manages={"files": left([place / _COMPLETE])}
    )


if __name__ == "__main__":
    main()
