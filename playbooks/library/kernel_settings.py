#!/usr/bin/python
"""Ansible module: settings of the kernel, now and after every boot.

ansible-core has none for sysctl; and what a setting had before comes back when it is declared no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.given import given, remember
from ansible.module_utils.root_file import keep, left, text_of

DOCUMENTATION = r"""
module: kernel_settings
short_description: Settings of the kernel, now and after every boot
description:
  - Writes a file for sysctl.d(5), and gives the kernel what it has otherwise. A setting that the kernel does
    not know is passed over. Without settings there is no file.
  - Remembers what the kernel had before. A setting that is declared no more gets that back, unless somebody
    gave it yet another value.
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
_REMEMBERED = "kernel_settings"
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


def current(name: str, kernel: Path = _KERNEL) -> str | None:
    """What the kernel has; None where it does not know the setting."""
    place = place_of(name, kernel)
    return " ".join(place.read_text(encoding="utf-8").split()) if place.is_file() else None


def former(
    settings: Mapping[str, str], before: Mapping[str, Mapping[str, str]], kernel: Path = _KERNEL
) -> dict[str, str]:
    """What settings had that are declared no more, where they still have what they were given."""
    return {
        name: was["had"]
        for name, was in before.items()
        if name not in settings and current(name, kernel) == was["given"]
    }


def giving(
    settings: Mapping[str, str], before: Mapping[str, Mapping[str, str]], kernel: Path = _KERNEL
) -> dict[str, dict[str, str]]:
    """What is to be remembered: what each declared setting is ``given``, and what it ``had`` before."""
    found = {name: current(name, kernel) for name in settings}
    return {
        name: {"given": " ".join(settings[name].split()), "had": before.get(name, {}).get("had", had)}
        for name, had in found.items()
        if had is not None
    }


def of_file(remembered: Mapping[str, Any], file: Path) -> dict[str, dict[str, str]]:
    """What is remembered of one file: by its path, or by its settings from when there was but one."""
    if str(file) in remembered:
        return dict(remembered[str(file)])
    text = text_of(file)
    return {name: was for name, was in _of_one(remembered).items() if f"\n-{name} = " in text}


def of_others(remembered: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """What is remembered besides."""
    own = {str(file), *of_file(remembered, file)}
    return {name: was for name, was in remembered.items() if name not in own}


def _of_one(remembered: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    return {name: was for name, was in remembered.items() if "given" in was}


def _write(module: AnsibleModule, file: Path, text: str) -> bool:
    if text:
        return keep(module, file, text)
    is_there = file.exists()
    if is_there and not module.check_mode:
        file.unlink()
    return is_there


def _tell(module: AnsibleModule, name: str, value: str) -> None:
    try:
        place_of(name).write_text(f"{value}\n", encoding="utf-8")
    except OSError as problem:
        module.fail_json(msg=f"the kernel does not take {name} = {value}: {problem.strerror}")


def main() -> None:
    """Write the file, then tell the kernel."""
    arguments: dict[str, Any] = {
        "file": {"type": "path", "required": True},
        "settings": {"type": "dict", "required": True},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    file = Path(module.params["file"])
    settings = {name: str(value) for name, value in module.params["settings"].items()}
    before, after = text_of(file), file_text(settings) if settings else ""
    known = given(_REMEMBERED)
    others, remembered = of_others(known, file), of_file(known, file)
    back = former(settings, remembered)
    new = giving(settings, remembered)
    if not module.check_mode:
        # What is to be given back is known before anything is given.
        remember(_REMEMBERED, {**others, str(file): {**remembered, **new}})
    written = _write(module, file, after)
    told = {**back, **{name: settings[name] for name in differing(settings)}}
    for name, value in told.items() if not module.check_mode else ():
        _tell(module, name, value)
    if not module.check_mode:
        remember(_REMEMBERED, {**others, **({str(file): new} if new else {})})
    module.exit_json(
        changed=written or bool(told),
        deploy_manages={"files": left([file]), "sysctls": settings},
        diff={"before": before, "after": after, "before_header": str(file), "after_header": str(file)},
    )


if __name__ == "__main__":
    main()
