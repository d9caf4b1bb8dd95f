#!/usr/bin/python
"""Ansible module: a Python program in an environment of its own, made of wheels with checksums."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.durable import keep_names, replace_file
from ansible.module_utils.urls import open_url

DOCUMENTATION = r"""
module: wheel_environment
short_description: A Python program in an environment of its own, made of wheels with checksums
description:
  - Fetches the wheels, compares them with their checksums and installs them, and nothing else, into a new
    environment in C(directory). The link C(current) there points to it once it is complete.
  - Other wheels, or another Python, make another environment; the one before goes away.
options:
  directory:
    description: Where the environment lies.
    type: path
    required: true
  wheels:
    description: The wheels; C(url), C(sha256), and C(architecture) as dpkg calls it where they are for one.
    type: list
    elements: dict
    required: true
author: [the maintainers of this project]
"""

RETURN = r"""
environment:
  description: Where it lies.
  type: str
  returned: always
deploy_manages:
  description: C(files), the file that is written when the environment is complete.
  type: dict
  returned: always
"""

_STAMP = "deploy.json"
_LINK = "current"
_PYTHON = Path("/usr/bin/python3")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_SECONDS = 60
_SILENT = "--disable-pip-version-check"
_DIGITS = 12
_ELSEWHERE = "Name a mirror in bootstrap_mirror, or leave GPUs out with gpu_exporter_source: none"
_LAST_LINES = 8

Wheel = Mapping[str, str]


class InstallError(Exception):
    """The environment could not be made; what was there before is still there."""


def fitting(wheels: Sequence[Mapping[str, Any]], machine: str) -> list[Wheel]:
    """Those for this machine, by the kernel's name of its architecture. Raises InstallError without any."""
    architecture = _ARCHITECTURES.get(machine, machine)
    found = [wheel for wheel in wheels if wheel.get("architecture") in (None, architecture)]
    if not found:
        message = f"gpu_exporter_wheels has nothing for {architecture}, which this host is"
        raise InstallError(message)
    return found


def digest(wheels: Sequence[Wheel], python: str) -> str:
    """Changes whenever something else would be installed, or another Python would run it."""
    content = [python, sorted(wheel["sha256"] for wheel in wheels)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:_DIGITS]


def fetch(wheel: Wheel, place: Path) -> Path:
    """Fetches a wheel under its own name, which says what it is for. Raises InstallError."""
    url = wheel["url"]
    if not urlsplit(url).path.endswith(".whl"):
        message = f"{url} is no wheel: what else pip takes runs code of its own, as root"
        raise InstallError(message)
    path = place / PurePosixPath(urlsplit(url).path).name
    try:
        content = open_url(url, timeout=_SECONDS).read()
    except (OSError, ValueError) as problem:
        message = f"{url}: {getattr(problem, 'reason', problem)}. {_ELSEWHERE}"
        raise InstallError(message) from None
    found = hashlib.sha256(content).hexdigest()
    if found != wheel["sha256"]:
        message = f"{url}: its checksum is {found}, and has to be {wheel['sha256']}"
        raise InstallError(message)
    path.write_bytes(content)
    return path


class Installer:
    """Installs wheels on this host."""

    def __init__(self, module: AnsibleModule, directory: Path) -> None:
        self._module = module
        self._directory = directory

    def install(self, wheels: Sequence[Wheel], place: Path) -> None:
        """Makes the environment and points there. Raises InstallError."""
        if place.exists():
            shutil.rmtree(place)
        with tempfile.TemporaryDirectory(prefix="wheels-") as download:
            files = [str(fetch(wheel, Path(download))) for wheel in wheels]
            try:
                self._must(str(_PYTHON), "-m", "venv", str(place))
                pip = [str(place / "bin/python"), "-m", "pip", "--isolated", "--no-input", _SILENT]
                self._must(*pip, "install", "--no-index", "--no-deps", "--no-cache-dir", *files)
                self._must(*pip, "check")
            except BaseException:
                shutil.rmtree(place, ignore_errors=True)
                raise
        installed = [{"url": wheel["url"], "sha256": wheel["sha256"]} for wheel in wheels]
        # What the stamp calls complete is on disk before it.
        os.sync()
        replace_file(place / _STAMP, f"{json.dumps(installed, indent=1)}\n".encode(), 0o644)
        self._point(place)

    def _point(self, place: Path) -> None:
        new = self._directory / f".{_LINK}.new"
        new.unlink(missing_ok=True)
        new.symlink_to(place.name)
        new.replace(self._directory / _LINK)
        keep_names(self._directory)
        for other in self._directory.iterdir():
            if other.is_dir() and not other.is_symlink() and other != place:
                shutil.rmtree(other)

    def _must(self, *command: str) -> None:
        # Of pip's own settings on this host none is meant.
        settings = {"PIP_CONFIG_FILE": os.devnull}
        code, out, err = self._module.run_command(list(command), environ_update=settings)
        if code != 0:
            said = [line for line in (out + err).splitlines() if line.strip()]
            raise InstallError(" | ".join(said[-_LAST_LINES:]))


def main() -> None:
    """Compare, install."""
    arguments: dict[str, Any] = {
        "directory": {"type": "path", "required": True},
        "wheels": {"type": "list", "elements": "dict", "required": True},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    directory = Path(module.params["directory"])
    os.umask(0o022)
    try:
        wheels = fitting(module.params["wheels"], platform.machine())
        place = directory / digest(wheels, _PYTHON.resolve().name)
        link = directory / _LINK
        is_current = (link / _STAMP).is_file() and link.resolve() == place.resolve()
        if not is_current and not module.check_mode:
            directory.mkdir(parents=True, exist_ok=True)
            Installer(module, directory).install(wheels, place)
    except InstallError as problem:
        module.fail_json(msg=f"the exporter could not be installed: {problem}")
    module.exit_json(
        changed=not is_current,
        environment=str(place),
        deploy_manages={"files": [str(link / _STAMP)]},
    )


if __name__ == "__main__":
    main()
