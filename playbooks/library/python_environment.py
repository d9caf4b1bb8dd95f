#!/usr/bin/python
"""Ansible module: a Python environment with exactly what a lock file says."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.durable import keep_names
from ansible.module_utils.root_file import left

DOCUMENTATION = r"""
module: python_environment
short_description: A Python environment with exactly what a lock file says
description:
  - Installs wheels whose checksums stand in the lock file, and nothing else; no code of a package runs while
    it is installed.
  - An environment is never changed. Another lock file or another Python makes a new one beside it, and the
    path, which is a link, points there in the end; the one before stays for what runs from it.
options:
  path:
    description: Where it is found.
    type: path
    required: true
  lock:
    description: The lock file on the host, as C(pip install --require-hashes) reads it.
    type: path
    required: true
  pending:
    description: Whether a task of this run changes the lock file. Only check mode needs it.
    type: bool
    default: false
  index_url:
    description: The package index. Left out, what pip on the host is set to.
    type: str
    default: ""
  find_links:
    description: A directory or page with the wheels; without index_url the only source.
    type: str
    default: ""
author: [the maintainers of this project]
"""

RETURN = r"""
environment:
  description: The directory that the path points to.
  type: str
  returned: always
deploy_manages:
  description: C(files), what says that the environment is whole.
  type: dict
  returned: always
"""

_COMPLETE = "complete"
_LAST_LINES = 8


class Environment:
    """What the path should be."""

    def __init__(self, module: AnsibleModule) -> None:
        self._module = module
        self.path = Path(module.params["path"])

    def place(self, lock: Path) -> Path:
        """The directory for this lock file and this Python."""
        version = self._run(["python3", "-c", "import sys; print(sys.version)"])
        digest = hashlib.sha256(lock.read_bytes() + version.encode()).hexdigest()[:12]
        return self.path.with_name(f"{self.path.name}-{digest}")

    def is_current(self, place: Path) -> bool:
        """Whether the path points to a whole environment."""
        is_link = self.path.is_symlink() and self.path.readlink() == Path(place.name)
        return is_link and (place / _COMPLETE).exists()

    def build(self, place: Path, lock: Path) -> None:
        """Fills the directory, then points there."""
        before = self.path.readlink().name if self.path.is_symlink() else ""
        if not (place / _COMPLETE).exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            self._run(["python3", "-m", "venv", "--clear", str(place)])
            self._run([*self._pip(place), "--requirement", str(lock)])
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
                # Its files stay for programs that run; as an environment it is gone.
                (other / _COMPLETE).unlink(missing_ok=True)

    def _pip(self, place: Path) -> list[str]:
        index, links = self._module.params["index_url"], self._module.params["find_links"]
        return [
            *(str(place / "bin/python"), "-m", "pip", "install", "--quiet", "--no-input", "--no-cache-dir"),
            *("--disable-pip-version-check", "--no-deps", "--require-hashes", "--only-binary", ":all:"),
            *(["--index-url", index] if index else []),
            *(["--find-links", links] if links else []),
            *(["--no-index"] if links and not index else []),
        ]

    def _run(self, command: list[str]) -> str:
        # Users have to read what root installs.
        code, out, said = self._module.run_command(command, umask=0o022, cwd="/")
        if code != 0:
            last = "\n".join((said or out).strip().splitlines()[-_LAST_LINES:])
            self._module.fail_json(msg=f"{' '.join(command[:4])} ends with exit code {code}: {last}")
        return str(out)


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "lock": {"type": "path", "required": True},
            "pending": {"type": "bool", "default": False},
            "index_url": {"type": "str", "default": ""},
            "find_links": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    os.umask(0o022)
    environment, lock = Environment(module), Path(module.params["lock"])
    if module.check_mode and (module.params["pending"] or not lock.exists()):
        module.exit_json(changed=True, environment="", deploy_manages={})
    place = environment.place(lock)
    is_current = environment.is_current(place)
    if not is_current and not module.check_mode:
        environment.build(place, lock)
    module.exit_json(
        changed=not is_current, environment=str(place), deploy_manages={"files": left([place / _COMPLETE])}
    )


if __name__ == "__main__":
    main()
