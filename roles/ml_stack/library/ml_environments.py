#!/usr/bin/python
"""Ansible module: Python environments in shared storage, each with a module file."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.durable import replace_file
from ansible.module_utils.ml_environment import (
    STAMP,
    Environment,
    is_complete,
    leftover_module_files,
    place_of,
)
from ansible.module_utils.root_file import left

DOCUMENTATION = r"""
module: ml_environments
short_description: Python environments in shared storage, each with a module file
description:
  - Builds what is missing. An environment is never changed once it is complete; another list of requirements
    makes another one beside it, and the module file then points there, so that running jobs keep what they
    started with.
  - What was cut off is built anew. A module file that is declared no more goes away, its environment stays.
options:
  environments:
    description: The environments, as in the role's variable ml_stack_environments.
    type: list
    elements: dict
    required: true
  directory:
    description: Where environments and module files lie.
    type: path
    required: true
  looks_only:
    description: Whether this host only has to see what another one built.
    type: bool
    default: false
author: [the maintainers of this project]
"""

RETURN = r"""
built:
  description: The environments that were built, or would be.
  type: list
  returned: always
deploy_manages:
  description: C(files), the module files.
  type: dict
  returned: always
"""

_LAST_LINES = 8


class Builder:
    """Builds environments on this host."""

    def __init__(self, module: AnsibleModule) -> None:
        self._module = module
        self._directory = Path(module.params["directory"])

    def build(self, environment: Environment) -> str:
        """Makes the environment and its module file current; returns what was built or pointed elsewhere."""
        place = environment.place(self._directory, self._version(environment))
        done = [] if is_complete(place) else [f"built {place}"]
        file, text = environment.module_file(self._directory), environment.module_text(place)
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            done.append(f"wrote {file}")
        if not self._module.check_mode:
            if not is_complete(place):
                self._fill(environment, place)
            if done:
                _write(file, text)
        return ", ".join(done)

    def _version(self, environment: Environment) -> str:
        command = [environment.python, "-c", "import sys; print(sys.version)"]
        return self._must(command, f"{environment.name}: there is no Python {environment.python} here")

    def _fill(self, environment: Environment, place: Path) -> None:
        what = f"{environment.name} {environment.version} could not be built"
        if place.exists():
            shutil.rmtree(place)
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._must([environment.python, "-m", "venv", str(place)], what)
            _write(place / "requirements.txt", "".join(f"{line}\n" for line in environment.requirements))
            pip = [str(place / "bin/python"), "-m", "pip", "--no-input", "--disable-pip-version-check"]
            install = [*pip, "install", "--no-cache-dir", "--requirement", str(place / "requirements.txt")]
            self._must(install, what, environment.pip_settings())
            installed = self._must([*pip, "freeze", "--all"], what)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        _write(place / STAMP, json.dumps({"installed": installed.splitlines()}, indent=1) + "\n")

    def _must(self, command: list[str], what: str, settings: dict[str, str] | None = None) -> str:
        try:
            code, out, err = self._module.run_command(
                command, environ_update=settings or {}, handle_exceptions=False
            )
        except OSError as problem:
            code, out, err = 127, "", str(problem)
        if code != 0:
            said = [line for line in (out + err).splitlines() if line.strip()]
            raise BuildError(f"{what}: " + " | ".join(said[-_LAST_LINES:]))
        return str(out).strip()


class BuildError(Exception):
    """An environment could not be built; nothing of it was left behind."""


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, text.encode(), 0o644)


def unseen(environment: Environment, directory: Path) -> str:
    """Why users of this host could not load an environment; empty when they can."""
    file = environment.module_file(directory)
    if not file.is_file():
        return f"{file} is not there"
    place = place_of(file.read_text(encoding="utf-8"))
    if not place or not is_complete(place):
        return f"{place or file} is not there, or not complete"
    if not os.access(place / "bin/python", os.X_OK):
        return f"{place}/bin/python does not run: this host has no Python of that version"
    return ""


def main() -> None:
    """Build, or look."""
    arguments: dict[str, Any] = {
        "environments": {"type": "list", "elements": "dict", "required": True},
        "directory": {"type": "path", "required": True},
        "looks_only": {"type": "bool", "default": False},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    directory = Path(module.params["directory"])
    declared = [Environment.declared(entry) for entry in module.params["environments"]]
    files = [environment.module_file(directory) for environment in declared]
    if module.params["looks_only"]:
        missing = [why for environment in declared if (why := unseen(environment, directory))]
        # In check mode the builder has not built yet.
        if missing and not module.check_mode:
            question = f"Is {directory} in storage that this host mounts (ml_stack_directory)?"
            module.fail_json(msg=f"{'; '.join(missing)}. {question}")
        module.exit_json(changed=False, built=[], deploy_manages={})
    # Users have to read what is built, whatever the builder's own habit is.
    os.umask(0o022)
    try:
        done = [text for environment in declared if (text := Builder(module).build(environment))]
    except BuildError as problem:
        module.fail_json(msg=str(problem))
    for path in leftover_module_files(directory, files):
        done.append(f"removed {path}")
        if not module.check_mode:
            path.unlink()
    module.exit_json(changed=bool(done), built=done, deploy_manages={"files": left(files)})


if __name__ == "__main__":
    main()
