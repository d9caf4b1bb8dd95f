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
  - What Slurm refuses keeps no other reservation from being made. What is made anew is there again as it was,
    where Slurm refuses the new one.
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
        # What goes of one that is there already is known until it is gone.
        remember(_REMEMBERED, {**declared, **before})
        pending, refused = _carried_out(steps, scontrol)
        as_before = (name for name in (*pending, *refused) if name in before)
        remember(_REMEMBERED, {**declared, **{name: before[name] for name in as_before}})
        if refused:
            module.fail_json(
                msg="; ".join(
                    f"reservation {name}: Slurm refuses it: {said}" for name, said in refused.items()
                )
            )
    module.exit_json(
        changed=bool(steps),
        commands=[" ".join(("scontrol", *step.words)) for step in steps],
        diff={
            "before": "".join(f"reservation {step.name}: {step.before}\n" for step in steps if step.before),
            "after": "".join(f"reservation {step.name}: {step.after}\n" for step in steps if step.after),
        },
        deploy_pending=[f"reservation {name} is there until no job uses it" for name in pending],
    )


def _carried_out(steps: list[Step], scontrol: Scontrol) -> tuple[list[str], dict[str, str]]:
    """Runs the commands; reservations that jobs keep from being taken away, and why others are refused."""
    pending: list[str] = []
    refused: dict[str, str] = {}
    for step in steps:
        if step.name in pending or step.name in refused:
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
        refused[step.name] = f"{said}{hint if 'busy' in said else ''}{_put_back(step, scontrol)}"
    return pending, refused


def _put_back(step: Step, scontrol: Scontrol) -> str:
    """Makes what was deleted for it again; what to say of that."""
    if not step.former:
        return ""
    code, _, said = scontrol(*step.former)
    return (
        ". It is there as it was" if code == 0 else f". As it was Slurm refuses it, too: {said}. It is gone"
    )


if __name__ == "__main__":
    os.umask(0o077)
    main()
