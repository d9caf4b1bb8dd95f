#!/usr/bin/python
"""Ansible module: caches of other registries that are declared no more are ended, and what they hold goes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: registry_instances
short_description: Caches of other registries that are declared no more are ended
description:
  - Stops the units of instances that are not named, and removes their settings and what they fetched. The
    images of the site itself are never removed.
options:
  names:
    description: The instances that are to be.
    type: list
    elements: str
    required: true
  directory:
    description: Where their settings are.
    type: path
    required: true
  images:
    description: Where their images are.
    type: path
    required: true
author: [the maintainers of this project]
"""

RETURN = r"""
ended:
  description: The instances that were ended.
  type: list
  returned: always
"""

_OWN = "own"


def gone(directory: Path, names: list[str]) -> list[str]:
    """The instances that have settings and are declared no more."""
    return sorted(path.stem for path in directory.glob("*.yml") if path.stem not in {*names, _OWN})


def main() -> None:
    """End each of them."""
    arguments: dict[str, Any] = {
        "names": {"type": "list", "elements": "str", "required": True},
        "directory": {"type": "path", "required": True},
        "images": {"type": "path", "required": True},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    directory, images = Path(module.params["directory"]), Path(module.params["images"])
    ended = gone(directory, module.params["names"])
    for name in ended if not module.check_mode else ():
        code, _, said = module.run_command(
            ["systemctl", "disable", "--now", f"slurm-registry@{name}.service"]
        )
        if code != 0:
            module.fail_json(msg=f"the cache of {name} cannot be ended: {said.strip()[-300:]}")
        shutil.rmtree(images / name, ignore_errors=True)
        (directory / f"{name}.yml").unlink()
    module.exit_json(changed=bool(ended), ended=ended)


if __name__ == "__main__":
    main()
