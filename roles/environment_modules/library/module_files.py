#!/usr/bin/python
"""Ansible module: module files of software that is there and has none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.root_file import keep, left, text_of

DOCUMENTATION = r"""
module: module_files
short_description: Module files of software that is there and has none
description:
  - Writes a module file in Tcl for each, and which version a name alone means. What it wrote and is declared
    no more it removes; other module files are left alone.
options:
  software:
    description: The software, as in the role's variable environment_modules_software.
    type: list
    elements: dict
    required: true
  directory:
    description: Where module files are.
    type: path
    required: true
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_manages:
  description: C(files), the module files.
  type: dict
  returned: always
"""

_HEAD = (
    "#%Module1.0\n"
    "# Made by deploy for software that has no module file; changes are undone by the next run.\n"
)
_PATHS = (
    ("PATH", "bin"),
    ("LD_LIBRARY_PATH", "lib"),
    ("LIBRARY_PATH", "lib"),
    ("CPATH", "include"),
    ("PKG_CONFIG_PATH", "lib/pkgconfig"),
)


def wanted(software: list[dict[str, Any]], directory: Path) -> dict[Path, str]:
    """The files and their text."""
    files = {directory / one["name"] / one["version"]: _module_file(one) for one in software}
    for one in software:
        if one.get("default"):
            files[directory / one["name"] / ".version"] = f'{_HEAD}set ModulesVersion "{one["version"]}"\n'
    return files


def _module_file(one: Mapping[str, Any]) -> str:
    return _HEAD + "".join(f"{line}\n" for line in _lines(one))


def _lines(one: Mapping[str, Any]) -> Iterator[str]:
    title = f"{one['name']} {one['version']}"
    yield f"module-whatis {_quoted(f'{title} in ' + one['prefix'])}"
    # Another version of it goes, as two in one shell are neither.
    yield f"conflict {one['name']}"
    for module in one.get("requires") or ():
        yield f"if {{ ![is-loaded {module}] }} {{ module load {module} }}"
    for variable, inner in _PATHS:
        yield f"prepend-path {variable} {_quoted(one['prefix'] + '/' + inner)}"
    for name, value in (one.get("variables") or {}).items():
        yield f"setenv {name} {_quoted(str(value))}"


def _quoted(text: str) -> str:
    """A word of Tcl in which nothing stands for something else."""
    return "{" + text + "}"


def leftover(files: dict[Path, str], directory: Path) -> list[Path]:
    """Files of this module's that are declared no more."""
    found = (path for path in sorted(directory.glob("*/*")) if path.is_file() and not path.is_symlink())
    return [path for path in found if path not in files and text_of(path).startswith(_HEAD)]


def main() -> None:
    """Write what is wanted, remove what is not."""
    module = AnsibleModule(
        argument_spec={
            "software": {"type": "list", "elements": "dict", "required": True},
            "directory": {"type": "path", "required": True},
        },
        supports_check_mode=True,
    )
    directory = Path(module.params["directory"])
    files = wanted(module.params["software"], directory)
    changed = [str(path) for path, text in files.items() if keep(module, path, text)]
    for path in leftover(files, directory):
        changed.append(str(path))
        if not module.check_mode:
            path.unlink()
    module.exit_json(changed=bool(changed), files=changed, deploy_manages={"files": left(files)})


if __name__ == "__main__":
    main()
