#!/usr/bin/python
"""Ansible module: the arguments of a daemon whose unit takes them from /etc/default."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.root_file import keep, left, text_of

DOCUMENTATION = r"""
module: daemon_arguments
short_description: The arguments of a daemon whose unit takes them from /etc/default
description:
  - Writes C(ARGS), and variables besides, into the file /etc/default/NAME, quoted as systemd reads it in
    EnvironmentFile= and splits it in ExecStart=, so that every argument arrives as it is given here.
options:
  name:
    description: The name of the file, which is the package's.
    type: str
    required: true
  arguments:
    description: The arguments; empty ones are left out.
    type: list
    elements: str
    required: true
  environment:
    description: Variables of the daemon's environment, by name.
    type: dict
    default: {}
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_manages:
  description: C(files), the file.
  type: dict
  returned: always
"""

_DIRECTORY = Path("/etc/default")


def as_one_word(argument: str) -> str:
    """An argument that systemd.service(5) keeps together when it splits a variable."""
    return re.sub(r"([\s\\'\"])", r"\\\1", argument)


def assignment(name: str, value: str) -> str:
    """A line of the file, in double quotes as systemd.exec(5) reads them."""
    quoted = re.sub(r"([\\\"`$])", r"\\\1", value)
    return f'{name}="{quoted}"\n'


def arguments_line(arguments: list[str]) -> str:
    """The line with the arguments."""
    return assignment("ARGS", " ".join(as_one_word(argument) for argument in arguments if argument))


def main() -> None:
    """Compare, write."""
    arguments: dict[str, Any] = {
        "name": {"type": "str", "required": True},
        "arguments": {"type": "list", "elements": "str", "required": True},
        "environment": {"type": "dict", "default": {}},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    path = _DIRECTORY / module.params["name"]
    before = text_of(path)
    after = "# Made by deploy; changes made here are undone by the next run.\n"
    after += arguments_line(module.params["arguments"])
    after += "".join(assignment(name, str(value)) for name, value in module.params["environment"].items())
    changed = keep(module, path, after)
    header = str(path)
    module.exit_json(
        changed=changed,
        deploy_manages={"files": left([path])},
        diff={"before": before, "after": after, "before_header": header, "after_header": header},
    )


if __name__ == "__main__":
    main()
