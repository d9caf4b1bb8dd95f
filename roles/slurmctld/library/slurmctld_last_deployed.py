#!/usr/bin/python
"""Ansible module: has no controller lead that did not take the configuration which was given last."""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.slurm_last_deployed import LastDeployed

DOCUMENTATION = r"""
module: slurmctld_last_deployed
short_description: Have no controller lead that did not take the last configuration
description:
  - While C(slurmctld_config) gives controllers a configuration, those that still have the one before may
    lead, too. This ends it. A controller that was away does not start until it has been given the last one.
  - Nothing is done by a controller that itself has another one than the last, and where none shares a state.
options:
  directory:
    description: StateSaveLocation.
    type: path
    required: true
  state_directory:
    description: Where the controller keeps which configuration it has.
    type: path
    default: /var/lib/deploy/slurmctld
author: [the maintainers of this project]
"""

RETURN = r""" # """


def main() -> None:
    """Look, and end it."""
    spec = {
        "directory": {"type": "path", "required": True},
        "state_directory": {"type": "path", "default": "/var/lib/deploy/slurmctld"},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    state = Path(module.params["directory"])
    last = LastDeployed(state, Path(module.params["state_directory"]))
    changed = not last.is_settled()
    if changed and not module.check_mode:
        try:
            last.settle()
        except (OSError, KeyError) as problem:
            module.fail_json(msg=f"the user slurm cannot write {state}: {problem}")
    module.exit_json(changed=changed)


if __name__ == "__main__":
    main()
