#!/usr/bin/python
"""Ansible module: settings of the kernel, now and after every boot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.root_file import keep, left, text_of

DOCUMENTATION = r"""
module: kernel_settings
short_description: Settings of the kernel, now and after every boot
description:
  - Writes a file for sysctl.d(5), and gives the kernel what it has otherwise. A setting that the kernel does
    not know is passed over.
options:
  file:
    description: The file.
    type: path
    required: true
  settings:
    description: Values by the names of the settings.
    type: dict
    required: true
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_manages:
  description: The file and the settings.
  type: dict
  returned: always
"""

_KERNEL = Path("/proc/sys")
_HEAD = (
    "# Made by deploy; changes made here are undone by the next run. "
    "The dash passes over what the kernel does not know.\n"
)


def place_of(name: str, kernel: Path = _KERNEL) -> Path:
    """Where the kernel keeps a setting; a name may have a slash where a part of it has a dot."""
    return kernel / (name if "/" in name else name.replace(".", "/"))


def file_text(settings: Mapping[str, str]) -> str:
    """As sysctl.d(5) reads it."""
    return _HEAD + "".join(f"-{name} = {value}\n" for name, value in settings.items())


def differing(settings: Mapping[str, str], kernel: Path = _KERNEL) -> list[str]:
    """The settings that the kernel knows and has otherwise."""
    places = {name: place_of(name, kernel) for name in settings}
    return [
        name
        for name, place in places.items()
        if place.is_file() and place.read_text(encoding="utf-8").split() != settings[name].split()
    ]


def main() -> None:
    """Write the file, then tell the kernel."""
    arguments: dict[str, Any] = {
        "file": {"type": "path", "required": True},
        "settings": {"type": "dict", "required": True},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    file = Path(module.params["file"])
    settings = {name: str(value) for name, value in module.params["settings"].items()}
    before, after = text_of(file), file_text(settings)
    written = keep(module, file, after)
    names = differing(settings)
    for name in names if not module.check_mode else ():
        try:
            place_of(name).write_text(f"{settings[name]}\n", encoding="utf-8")
        except OSError as problem:
            module.fail_json(msg=f"the kernel does not take {name} = {settings[name]}: {problem.strerror}")
    module.exit_json(
        changed=written or bool(names),
        deploy_manages={"files": left([file]), "sysctls": settings},
        diff={"before": before, "after": after, "before_header": str(file), "after_header": str(file)},
    )


if __name__ == "__main__":
    main()
