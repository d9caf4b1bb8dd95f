#!/usr/bin/python
"""Ansible module: Python environments in shared storage, each with a module file."""

from __future__ import annotations

import json
import os
import pwd
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.build_place import BuildError, BuildPlace, acting_as, copy_tree
from ansible.module_utils.durable import replace_file
from ansible.module_utils.ml_environment import (
    STAMP,
    Environment,
    is_complete,
    leftover_module_files,
    lock_lines,
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
  - An account of its own handles what comes from an index; wheels only, compared with the checksums of the
    lock file that the first build leaves. What it made is then copied by the owner.
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
  owner:
    description: The account that everything in the directory belongs to.
    type: str
  builder:
    description: The account that builds.
    type: str
  build_directory:
    description: Where it builds, on a disk of this host.
    type: path
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
_NO_SOURCES = (
    "Only wheels are installed, because a source archive runs code of its own: where an index has none, make "
    "one with pip wheel and name its directory in find_links"
)


class Builder:
    """Builds environments on this host, as the account for it; they belong to their owner in the end."""

    def __init__(self, module: AnsibleModule) -> None:
        self._module = module
        self._directory = Path(module.params["directory"])
        self._owner = _account(module.params["owner"])

    def build(self, environment: Environment) -> str:
        """Makes the environment and its module file current; returns what was built or pointed elsewhere."""
        python = self._version(environment)
        kept = environment.kept(self._directory, python)
        place = kept or environment.place(self._directory, python)
        done = [] if is_complete(place) else [f"built {place}"]
        file, text = environment.module_file(self._directory), environment.module_text(place)
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            done.append(f"wrote {file}")
        if not self._module.check_mode:
            if not is_complete(place):
                self._fill(environment, place)
            if done:
                with acting_as(self._owner):
                    _write(file, text)
        return ", ".join(done)

    def remove(self, path: Path) -> None:
        """Removes a module file."""
        with acting_as(self._owner):
            path.unlink()

    def _version(self, environment: Environment) -> str:
        # Not sys.version: an update has another date in it, and wheels of before fit.
        said = "import os, sys; print(os.path.realpath(sys.executable), 'python%d.%d' % sys.version_info[:2])"
        command = [environment.python, "-c", said]
        return self._must(command, f"{environment.name}: there is no Python {environment.python} here")

    def _fill(self, environment: Environment, place: Path) -> None:
        build = BuildPlace(
            _account(self._module.params["builder"]), Path(self._module.params["build_directory"]) / "build"
        )
        lock = environment.lock_file(self._directory, place)
        with acting_as(self._owner):
            if place.exists():
                shutil.rmtree(place)
            place.mkdir(parents=True)
        try:
            with build.made():
                locked = self._install(environment, place, build, lock)
                with acting_as(self._owner):
                    copy_tree(build.environment, place)
        except BaseException:
            with acting_as(self._owner):
                shutil.rmtree(place, ignore_errors=True)
            raise
        # What the stamp calls complete is on disk before it.
        os.sync()
        with acting_as(self._owner):
            _write(place / "requirements.txt", _lines(environment.requirements))
            _write(lock, _lines(locked))
            _write(place / STAMP, json.dumps({"installed": locked}, indent=1) + "\n")

    def _install(self, environment: Environment, place: Path, build: BuildPlace, lock: Path) -> list[str]:
        """What was resolved once is what is installed ever after."""
        what = f"{environment.name} {environment.version} could not be built"
        settings = {**environment.pip_settings(), **build.settings}
        pip = [str(place / "bin/python"), "-m", "pip", "--no-input", "--disable-pip-version-check"]
        wheels_only = ["--no-cache-dir", "--only-binary", ":all:"]
        wanted = build.directory / "requirements.txt"

        def run(*command: str, hint: str = "") -> None:
            self._must(build.command(place, command), what, settings, hint)

        run(environment.python, "-m", "venv", str(place))
        is_locked = lock.is_file()
        _write(wanted, lock.read_text(encoding="utf-8") if is_locked else _lines(environment.requirements))
        run(
            *(*pip, "download", *wheels_only, "--dest", str(build.wheels), "--requirement", str(wanted)),
            *(["--require-hashes", "--no-deps"] if is_locked else []),
            hint=f"{lock} says what it was built of before" if is_locked else _NO_SOURCES,
        )
        locked = lock_lines(build.wheels)
        _write(wanted, _lines(locked))
        run(
            *(*pip, "install", *wheels_only, "--no-index", "--find-links", str(build.wheels)),
            *("--require-hashes", "--no-deps", "--requirement", str(wanted)),
        )
        return locked

    def _must(
        self, command: list[str], what: str, settings: dict[str, str] | None = None, hint: str = ""
    ) -> str:
        try:
            code, out, err = self._module.run_command(
                command, environ_update=settings or {}, handle_exceptions=False
            )
        except OSError as problem:
            code, out, err = 127, "", str(problem)
        if code != 0:
            said = [line for line in (out + err).splitlines() if line.strip()]
            raise BuildError(f"{what}: " + " | ".join(said[-_LAST_LINES:]) + (f". {hint}" if hint else ""))
        return str(out).strip()


def _account(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        message = f"there is no account {name} on this host"
        raise BuildError(message) from None


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


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
        "owner": {"type": "str"},
        "builder": {"type": "str"},
        "build_directory": {"type": "path"},
        "looks_only": {"type": "bool", "default": False},
    }
    module = AnsibleModule(
        argument_spec=arguments,
        required_if=[("looks_only", False, ("owner", "builder", "build_directory"))],
        supports_check_mode=True,
    )
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
        builder = Builder(module)
        done = [text for environment in declared if (text := builder.build(environment))]
    except BuildError as problem:
        module.fail_json(msg=str(problem))
    for path in leftover_module_files(directory, files):
        done.append(f"removed {path}")
        if not module.check_mode:
            builder.remove(path)
    module.exit_json(changed=bool(done), built=done, deploy_manages={"files": left(files)})


if __name__ == "__main__":
    main()
