#!/usr/bin/python
"""Ansible module: directories that users share, with owners, groups and modes.

The module file would not do: as root it follows symbolic links, and directories of users may lie on the way.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.durable import keep_names
from ansible.module_utils.root_file import left

DOCUMENTATION = r"""
module: shared_directories
short_description: Directories that users share, with owners, groups and modes
description:
  - Makes what is missing, and keeps owner, group and mode. What lies inside is left alone.
  - Without C(owner) it is root's, without C(group) of the owner's own group.
  - No symbolic link is followed, wherever in a path it stands, and nothing is made in a directory that is not
    there.
options:
  directories:
    description: The directories, as in the variable shared_directories_paths.
    type: list
    elements: dict
    required: true
author: [the maintainers of this project]
"""

RETURN = r"""
differing:
  description: The directories that were made or changed, or would be.
  type: list
  returned: always
deploy_manages:
  description: C(files), the directories.
  type: dict
  returned: always
"""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class RefusedError(Exception):
    """Why a directory is not as it is declared."""


class Missing(RefusedError):  # noqa: N818 - what is missing is no error of its own
    """A directory on the way is not there."""


class Shared:
    """One directory as it is declared."""

    def __init__(self, declared: dict[str, Any]) -> None:
        self.path = PurePosixPath(declared["path"])
        self._mode = int(str(declared.get("mode") or "0755"), 8)
        owner = _entry(pwd.getpwnam, "account", declared.get("owner") or "root")
        self._owner = owner.pw_uid
        group = declared.get("group")
        self._group = _entry(grp.getgrnam, "group", group).gr_gid if group else owner.pw_gid

    def keep(self, *, looks_only: bool) -> bool:
        """Whether it differs; makes it right unless one only looks."""
        above = opened(self.path.parent)
        try:
            return self._keep_in(above, looks_only=looks_only)
        finally:
            os.close(above)

    def _keep_in(self, above: int, *, looks_only: bool) -> bool:
        made = False
        try:
            place = os.open(self.path.name, _DIRECTORY, dir_fd=above)
        except FileNotFoundError:
            if looks_only:
                return True
            # For nobody else until it is its owner's.
            os.mkdir(self.path.name, 0o700, dir_fd=above)
            place, made = os.open(self.path.name, _DIRECTORY, dir_fd=above), True
        except OSError as problem:
            raise RefusedError(_in_words(self.path, problem)) from None
        try:
            return self._make_right(place, looks_only=looks_only) or made
        finally:
            os.close(place)

    def _make_right(self, place: int, *, looks_only: bool) -> bool:
        found = os.fstat(place)
        is_owned = (found.st_uid, found.st_gid) == (self._owner, self._group)
        is_right = is_owned and stat.S_IMODE(found.st_mode) == self._mode
        if not is_right and not looks_only:
            if not is_owned:
                os.fchown(place, self._owner, self._group)
            os.fchmod(place, self._mode)
            os.fsync(place)
        return not is_right


def opened(path: PurePosixPath) -> int:
    """A descriptor of a directory, reached through no symbolic link."""
    place = os.open("/", _DIRECTORY)
    passed = PurePosixPath("/")
    for name in path.parts[1:]:
        passed /= name
        try:
            inner = os.open(name, _DIRECTORY, dir_fd=place)
        except FileNotFoundError:
            message = f"{passed} is not there"
            raise Missing(message) from None
        except OSError as problem:
            raise RefusedError(_in_words(passed, problem)) from None
        finally:
            os.close(place)
        place = inner
    return place


def _in_words(path: PurePosixPath, problem: OSError) -> str:
    if Path(path).is_symlink():
        return f"{path} is a symbolic link, which root does not follow here: declare where it leads"
    return f"{path}: {problem.strerror}"


def _entry(find: Callable[[str], Any], kind: str, name: str) -> Any:  # noqa: ANN401 - of two databases
    try:
        return find(str(name))
    except KeyError:
        message = f"there is no {kind} {name} on this host"
        raise RefusedError(message) from None


def main() -> None:
    """Make all of them right."""
    module = AnsibleModule(
        argument_spec={"directories": {"type": "list", "elements": "dict", "required": True}},
        supports_check_mode=True,
    )
    paths = [PurePosixPath(declared["path"]) for declared in module.params["directories"]]
    differing: list[str] = []
    for declared in module.params["directories"]:
        try:
            if Shared(declared).keep(looks_only=module.check_mode):
                differing.append(str(declared["path"]))
        except Missing as problem:
            # What a check would make is not there yet.
            if module.check_mode and any(path in PurePosixPath(declared["path"]).parents for path in paths):
                differing.append(str(declared["path"]))
                continue
            question = "Is the storage mounted? What it lies in stands before it in shared_directories_paths"
            module.fail_json(msg=f"{declared['path']} cannot be made: {problem}. {question}")
        except RefusedError as problem:
            module.fail_json(msg=f"{declared['path']} is not as declared: {problem}")
    if not module.check_mode:
        for path in paths:
            keep_names(Path(path.parent))
    module.exit_json(
        changed=bool(differing),
        differing=differing,
        deploy_manages={"files": left(Path(path) for path in paths)},
    )


if __name__ == "__main__":
    main()
