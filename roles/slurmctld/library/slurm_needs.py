#!/usr/bin/python
"""Ansible module: refuses what the Slurm of a cluster does not know yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.slurm_versions import (
    ASK_FOR_VERSIONS,
    Version,
    is_before,
    oldest,
    parse_version,
)

DOCUMENTATION = r"""
module: slurm_needs
short_description: Refuse what the Slurm of a cluster does not know yet
description:
  - Compares what is asked for with the release of the installed slurmctld and, while it runs, with those that
    nodes have told it. An older Slurm would pass over a word, or not start by it. Changes nothing.
  - Where no slurmctld is installed yet there is nothing to compare with.
options:
  asked:
    description: >-
      What is asked for: C(setting), by which; C(since), the release that knows it; C(older), what one before
      does; C(instead), what to do; C(hosts), C(controllers) where no node's release counts.
    type: list
    elements: dict
    required: true
author: [the maintainers of this project]
"""

RETURN = r"""
versions:
  description: The version of the controller, and the oldest of it and the nodes.
  type: list
  returned: always
"""


def refusals(asked: Iterable[Mapping[str, Any]], own: Version, of_nodes: Version) -> list[str]:
    """What these versions do not know, in words."""
    found = []
    for need in asked:
        version = own if need["hosts"] == "controllers" else of_nodes
        if is_before(version, need["since"]):
            shown = ".".join(f"{part:02}" if index == 1 else str(part) for index, part in enumerate(version))
            found.append(
                f"{need['setting']} takes Slurm {need['since']} or later, and here is {shown}: "
                f"{need['older']}. {need['instead'][:1].upper()}{need['instead'][1:]}"
            )
    return found


def main() -> None:
    """Ask, compare, refuse."""
    arguments: dict[str, Any] = {"asked": {"type": "list", "elements": "dict", "required": True}}
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    program = module.get_bin_path("slurmctld")
    own = parse_version(module.run_command([program, "-V"])[1]) if program else ()
    if not own:
        module.exit_json(changed=False, versions=[])
    runs = module.run_command(["systemctl", "is-active", "--quiet", "slurmctld"])[0] == 0
    told = module.run_command(ASK_FOR_VERSIONS)[1].splitlines() if runs else []
    versions = [own, oldest(own, told)]
    if wrong := refusals(module.params["asked"], *versions):
        module.fail_json(msg=f"nothing was changed: {'; '.join(wrong)}")
    module.exit_json(changed=False, versions=versions)


if __name__ == "__main__":
    main()
