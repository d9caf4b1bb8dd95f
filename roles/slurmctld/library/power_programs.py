#!/usr/bin/python
"""Ansible module: the programs by which slurmctld switches nodes off and on."""

import grp
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.root_file import keep, left

DOCUMENTATION = r"""
module: power_programs
short_description: Keep the programs by which slurmctld switches nodes off and on
description:
  - Writes those that are given as texts, for all to run and for root alone to change.
  - Fails where one that is named by its path could be changed by others, or not be run by the user slurm.
options:
  directory:
    description: Where those that are given as texts lie, and nothing else does.
    type: path
    required: true
  programs:
    description: By name C(text), or C(path).
    type: dict
    required: true
  removes:
    description: Whether to take away what lies there and is not given, and to do nothing else.
    type: bool
    default: false
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_manages:
  description: What is recorded of the host, by kind.
  type: dict
  returned: always
"""

_MODE = 0o755


def why_not_trusted(path: Path) -> str:
    """Why a program is not to be run; empty where nobody but root can change it, or what it lies in."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return "it is no file"
        for place in _on_the_way(path):
            found = place.stat()
            by_group = found.st_mode & stat.S_IWGRP and not _is_roots(found.st_gid)
            if found.st_uid != 0 or found.st_mode & stat.S_IWOTH or by_group:
                return f"others than root can change {place}"
    except OSError as problem:
        return f"it is not there: {problem.strerror}"
    return ""


def _on_the_way(path: Path) -> Iterator[Path]:
    """A file and the directories on the way to it, those among them in which links lie that lead there."""
    for place in (path, *path.parents):
        if place.is_symlink():
            yield from _on_the_way(place.parent / place.readlink())
        else:
            yield place


def _is_roots(gid: int) -> bool:
    """Whether a group is root's, or the one to which Debian gives /usr/local."""
    with suppress(KeyError):
        return gid == 0 or grp.getgrgid(gid).gr_name == "staff"
    return False


def main() -> None:
    """Looks at those of the site, writes the others, or removes what is too much."""
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "programs": {"type": "dict", "required": True},
            "removes": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    directory = Path(module.params["directory"])
    programs = {name: said for name, said in module.params["programs"].items() if said}
    texts = {name: str(said["text"]) for name, said in programs.items() if said.get("text") is not None}
    if module.params["removes"]:
        module.exit_json(changed=_remove(module, directory, texts), deploy_manages={})
    for name, said in programs.items():
        if name not in texts:
            _refuse_unfit(module, name, Path(said["path"]))
    changed = False
    if texts and not directory.is_dir():
        changed = True
        if not module.check_mode:
            directory.mkdir(mode=_MODE, parents=True)
    for name, text in texts.items():
        changed |= keep(module, directory / name, text, _MODE)
    files = left([directory, *(directory / name for name in texts)]) if texts else {}
    module.exit_json(changed=changed, deploy_manages={"files": files})


def _refuse_unfit(module: AnsibleModule, name: str, path: Path) -> None:
    why = why_not_trusted(path)
    if not why:
        code, _, _ = module.run_command(["runuser", "--user=slurm", "--", "test", "-x", str(path)], cwd="/")
        why = "the user slurm cannot run it" if code else ""
    if why:
        module.fail_json(
            msg=f"nothing was changed: slurmctld_{name}_program is {path}, and {why}. Slurm would switch no "
            f"node off and on. Put it there on each controller: chown root: {path}; chmod 755 {path}"
        )


def _remove(module: AnsibleModule, directory: Path, texts: dict[str, str]) -> bool:
    others = [*_others(directory, texts)] if texts else [directory] * directory.is_dir()
    for path in others if not module.check_mode else ():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return bool(others)


def _others(directory: Path, texts: dict[str, str]) -> Iterator[Path]:
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        if path.name not in texts:
            yield path


if __name__ == "__main__":
    main()
