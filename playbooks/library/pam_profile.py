#!/usr/bin/python
"""Ansible module: a profile of pam-auth-update that is there and in force."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.root_file import keep, left, text_of

DOCUMENTATION = r"""
module: pam_profile
short_description: A profile of pam-auth-update that is there and in force
description:
  - Writes the profile and has pam-auth-update put its lines into /etc/pam.d/common-*, as packages do.
  - Where these files were edited by hand, pam-auth-update leaves them alone, and the module fails.
options:
  name:
    description: The profile's file below /usr/share/pam-configs.
    type: str
    required: true
  text:
    description: Its text; see pam-auth-update(8).
    type: str
    default: ""
  state:
    description: >-
      Whether it is in force; with C(absent) its file goes, and the profiles that it excluded come into force
      again.
    type: str
    choices: [present, absent]
    default: present
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_manages:
  description: The profile.
  type: dict
  returned: where it is in force
"""

_PROFILES = Path("/usr/share/pam-configs")
_ENABLED = Path("/var/lib/pam")
_IN_FORCE = Path("/etc/pam.d")
_KINDS = ("auth", "account", "session", "password")


def is_in_force(name: str, text: str) -> bool:
    """Whether pam-auth-update has taken a profile, as it is now, and none that it excludes."""
    for kind in _KINDS:
        saved, field = text_of(_ENABLED / kind), kind.capitalize()
        if any(f"Module: {one}\n" in saved for one in excluded_by(text)):
            return False
        # The first profile of a kind has lines of its own where it names such.
        forms = lines_of(text, field), lines_of(text, f"{field}-Initial")
        taken = _lines_taken(name, saved)
        if taken not in forms or (not taken and any(forms)):
            return False
        there = [_plain(one.removeprefix(kind)) for one in text_of(_IN_FORCE / f"common-{kind}").splitlines()]
        if not all(any(map(_as_written(line).fullmatch, there)) for line in taken):
            return False
    return True


def _lines_taken(name: str, saved: str) -> list[str]:
    """The lines of a profile in what pam-auth-update keeps of one kind."""
    _, _, rest = f"\n{saved}".partition(f"\nModule: {name}\n")
    lines = itertools.takewhile(lambda line: not line.startswith("Module: "), rest.splitlines())
    return [_plain(line) for line in lines if line.strip()]


def _as_written(line: str) -> re.Pattern[str]:
    """A line as it comes to be: a jump to the end is one over the number of lines that follow."""
    control, end, rest = line.partition("]")
    return re.compile(re.escape(control).replace("=end", "=[0-9]+") + re.escape(end + rest))


def excluded_by(text: str) -> list[str]:
    """The profiles that must not be in force beside this one."""
    said = (line.partition(":")[2] for line in text.splitlines() if line.startswith("Conflicts:"))
    return " ".join(said).replace(",", " ").split()


def lines_of(text: str, field: str) -> list[str]:
    """The lines of a profile's field, which are indented below it."""
    rest = text.partition(f"\n{field}:\n")[2].splitlines()
    return [_plain(line) for line in itertools.takewhile(lambda line: line[:1].isspace(), rest)]


def _plain(line: str) -> str:
    return " ".join(line.split())


def _update(module: AnsibleModule, *options: str) -> None:
    command = ["pam-auth-update", "--package", *options]
    module.run_command(command, environ_update={"DEBIAN_FRONTEND": "noninteractive"}, check_rc=True)


def take_away(module: AnsibleModule, path: Path, before: str) -> None:
    """Ends what the profile did; ends the module."""
    is_there = path.exists()
    if is_there and not module.check_mode:
        again = [one for one in excluded_by(before) if (_PROFILES / one).exists()]
        _update(module, "--remove", path.name, *(["--enable", *again] if again else []))
        path.unlink()
    diff = {"before": before, "after": "", "before_header": str(path), "after_header": str(path)}
    module.exit_json(changed=is_there, diff=diff)


def main() -> None:
    """Compare, write, have it put into force, and look whether it is."""
    arguments: dict[str, Any] = {
        "name": {"type": "str", "required": True},
        "text": {"type": "str", "default": ""},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    }
    module = AnsibleModule(
        argument_spec=arguments,
        supports_check_mode=True,
        required_if=[("state", "present", ("text",))],
    )
    name, text = module.params["name"], module.params["text"]
    path = _PROFILES / name
    before = text_of(path)
    if module.params["state"] == "absent":
        take_away(module, path, before)
    changed = keep(module, path, text)
    if before != text or not is_in_force(name, text):
        changed = True
        if not module.check_mode:
            _update(module, "--enable", name)
            if not is_in_force(name, text):
                module.fail_json(
                    msg=f"pam-auth-update did not put {path} into force: /etc/pam.d/common-* were edited by "
                    "hand. Look at them, then take what packages make: pam-auth-update --force"
                )
    module.exit_json(
        changed=changed,
        deploy_manages={"files": left([path])},
        diff={"before": before, "after": text, "before_header": str(path), "after_header": str(path)},
    )


if __name__ == "__main__":
    main()
