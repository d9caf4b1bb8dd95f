#!/usr/bin/python
"""Ansible module: Slurm's reservations as they are declared."""

import os
from collections.abc import Callable
from datetime import datetime

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.given import given, remember
from ansible.module_utils.reservation_plan import Step, There, parse, plan, resolved

DOCUMENTATION = r"""
module: slurm_reservations
short_description: Slurm's reservations as they are declared
description:
  - Compares the declared reservations with what scontrol shows, and runs the fewest scontrol commands.
  - Remembers what was declared. What is declared no more is taken away; one that jobs still use is named
    (C(deploy_pending)), and goes at a later run.
  - In check mode a slurmctld that does not answer counts as one without reservations.
options:
  reservations:
    description: The reservations; see the role's argument specification for their keys.
    type: list
    elements: dict
    default: []
  nodes:
    description: By reservation its nodes, as Slurm writes them; all of one that is not listed.
    type: dict
    default: {}
author: [the maintainers of this project]
"""

RETURN = r"""
commands:
  description: What scontrol was told, or would be.
  type: list
  returned: always
"""

Scontrol = Callable[..., tuple[int, str, str]]

_REMEMBERED = "slurm_reservations"
_ENVIRONMENT = {"SLURM_TIME_FORMAT": "standard", "LC_ALL": "C"}


def main() -> None:
    """Ask, plan, and run."""
    arguments = {
        "reservations": {"type": "list", "elements": "dict", "default": []},
        "nodes": {"type": "dict", "default": {}},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    entries, nodes = module.params["reservations"], module.params["nodes"]
    before = given(_REMEMBERED)
    if not entries and not before:
        module.exit_json(changed=False, commands=[])
    program = module.get_bin_path("scontrol", required=not module.check_mode)

    def scontrol(*words: str) -> tuple[int, str, str]:
        code, out, err = module.run_command([program, *words], environ_update=_ENVIRONMENT)
        return code, str(out), str(err).strip() or str(out).strip()

    def names(expression: str) -> set[str]:
        return {*scontrol("show", "hostnames", expression)[1].split()}

    def alike(one: str, other: str) -> bool:
        return one == other or names(one) == names(other)

    code, text, said = scontrol("--oneliner", "show", "reservation") if program else (1, "", "")
    if code != 0 and not module.check_mode:
        module.fail_json(msg=f"slurmctld does not say which reservations there are: {said}")
    now = datetime.now()  # noqa: DTZ005 - the controller's own, as Slurm's
    steps = list(plan(entries, nodes, There(parse(text) if code == 0 else {}, before, now, alike)))
    declared = {entry["name"]: resolved(entry, nodes) for entry in entries}
    pending: list[str] = []
    if not module.check_mode:
        remember(_REMEMBERED, {**before, **declared})
        pending = _carried_out(module, steps, scontrol)
        remember(_REMEMBERED, {**declared, **{name: before[name] for name in pending if name in before}})
    module.exit_json(
        changed=bool(steps),
        commands=[" ".join(("scontrol", *step.words)) for step in steps],
        diff={
            "before": "".join(f"reservation {step.name}: {step.before}\n" for step in steps if step.before),
            "after": "".join(f"reservation {step.name}: {step.after}\n" for step in steps if step.after),
        },
        deploy_pending=[f"reservation {name} is there until no job uses it" for name in pending],
    )


def _carried_out(module: AnsibleModule, steps: list[Step], scontrol: Scontrol) -> list[str]:
    """Runs the commands; the names of reservations that jobs keep from being taken away."""
    pending = []
    for step in steps:
        if step.name in pending:
            continue  # it is to be made anew
        code, _, said = scontrol(*step.words)
        if code == 0:
            continue
        if step.words[0] == "delete" and "in use" in said:
            pending.append(step.name)
            continue
        hint = (
            ". Jobs there would not end before it (IGNORE_JOBS among its flags lets them run on), another "
            "reservation has the nodes (OVERLAP), or too few of them are up for a number of nodes"
        )
        module.fail_json(
            msg=f"reservation {step.name}: Slurm refuses it: {said}{hint if 'busy' in said else ''}",
            command=["scontrol", *step.words],
        )
    return pending


if __name__ == "__main__":
    os.umask(0o077)
    main()
