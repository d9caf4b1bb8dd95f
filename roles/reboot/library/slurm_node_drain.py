#!/usr/bin/python
"""Ansible module, for the controller: drains a node, names its jobs, takes its own drain back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.drain_ledger import AwayError, locked
from ansible.module_utils.durable import replace_file
from ansible.module_utils.slurm_nodes import SlurmNode, parse_nodes

DOCUMENTATION = r"""
module: slurm_node_drain
short_description: Drains a node, or takes back a drain of its own
description:
  - C(drained) lets no new job start on the node. A node that somebody else drained, or that is down,
    keeps its reason.
  - C(seen) changes nothing.
  - C(resumed) resumes the node only when its reason is the one that this module gave, or one of C(of_slurm).
    Where C(deploy node drain) gave another one since, the node stays drained, and never gets this module's
    back.
  - A node that Slurm does not know, and a controller without Slurm, are no mistake. A controller that
    does not
    answer is, because nobody can say then which jobs run.
options:
  node:
    description: The node.
    type: str
    required: true
  state:
    description: What the node should be.
    type: str
    choices: [drained, resumed, seen]
    required: true
  at_once:
    description: How many nodes this module may have drained at the same time; 0 for any number. Only a node
      that is in service is held back.
    type: int
    default: 0
  of_slurm:
    description: How reasons begin by which Slurm itself drained the node for what was changed meanwhile;
      C(resumed) takes them back, too. Slurm refuses that as long as they hold.
    type: list
    elements: str
    default: []
  configuration:
    description: Where slurm.conf lies; without it there is no Slurm.
    type: path
    default: /etc/slurm/slurm.conf
author: [the maintainers of this project]
"""

RETURN = r"""
jobs:
  description: The jobs that still are on the node, with their users.
  type: list
  returned: always
is_ours:
  description: Whether the drain is one of this module.
  type: bool
  returned: always
is_in_service:
  description: Whether the node has jobs, or takes them.
  type: bool
  returned: always
"""

REASON = "deploy: maintenance"
LEDGER = Path("/var/lib/deploy/drains.json")
"""The drains of `deploy node drain`, kept by deploy/run/drains.py."""
_SECONDS = "15"
_SERVING = frozenset({"IDLE", "ALLOCATED", "MIXED", "COMPLETING"})
_LEFT_AS_IS = (
    "the node is left as it is, because nobody can say which jobs run there. See on the controller: "
    "systemctl status slurmctld"
)
_ON_A_NODE = "running,suspended,completing,configuring,stopped"


def parse_jobs(text: str) -> list[str]:
    """`squeue --format '%i %u'` as "17 (alice)"."""
    rows = (line.split(maxsplit=1) for line in text.splitlines() if line.strip())
    return [f"{job} ({user})" for job, user in rows]


def parse_drained(text: str) -> frozenset[str]:
    """The nodes with this module's reason, in rows of `sinfo --Node --format '%N|%E'`."""
    rows = (line.strip().partition("|") for line in text.splitlines())
    return frozenset(name for name, _, reason in rows if is_own(reason))


def is_serving(states: frozenset[str]) -> bool:
    """Whether a node of these states takes jobs."""
    return bool(states & _SERVING) and not states & {"DRAIN", "DOWN", "NOT_RESPONDING"}


def is_own(reason: str) -> bool:
    """Whether a reason is this module's, with what Slurm may have added to it, as Not responding."""
    return reason == REASON or reason.startswith(f"{REASON} : ")


def is_held(states: frozenset[str], reason: str) -> bool:
    """Whether somebody drained it or took it down: that reason is his, and no new job starts there anyway.

    What Slurm took down because it did not answer returns by itself when it does.
    """
    return "DRAIN" in states or ("DOWN" in states and reason not in {"", "Not responding"})


def is_to_be_resumed(states: frozenset[str], reason: str, of_slurm: Iterable[str] = ()) -> bool:
    """Whether it is drained by this module, or by Slurm for one of these reasons."""
    return "DRAIN" in states and (is_own(reason) or reason.startswith(tuple(of_slurm)))


def forget_displaced(node: str) -> bool:
    """Takes this module's drain of a node out of the ledger; whether it was there. Raises AwayError."""
    with locked(LEDGER.parent) as place:
        file = place / LEDGER.name
        if not file.exists():
            return False
        entries = json.loads(file.read_text(encoding="utf-8"))
        left = [it for it in entries if (it["node"], it["why"], it.get("is_foreign")) != (node, REASON, True)]
        if left == entries:
            return False
        replace_file(file, json.dumps(left, indent=1).encode(), 0o600)
    return True


class Controller:
    """Slurm, as this machine speaks to it."""

    def __init__(self, module: AnsibleModule) -> None:
        self._module = module

    def ask(self, *command: str) -> tuple[int, str]:
        """A command's exit code and output, within bounds of time."""
        code, out, err = self._module.run_command(
            ["timeout", _SECONDS, *command], environ_update={"LC_ALL": "C", "SLURM_TIME_FORMAT": "standard"}
        )
        return code, str(out) + str(err)

    def must(self, *command: str) -> str:
        """The output of a command that has to succeed."""
        code, said = self.ask(*command)
        if code != 0:
            self._module.fail_json(msg=f"{' '.join(command)}: {said.strip() or 'no answer'}; {_LEFT_AS_IS}")
        return said

    def node(self, name: str) -> SlurmNode | None:
        """What Slurm says of a node; None when it does not know it."""
        question = ("scontrol", "--oneliner", "show", "node", name)
        code, said = self.ask(*question)
        if code != 0 and "not found" in said:
            return None
        found = parse_nodes(said if code == 0 else self.must(*question))
        if not found:
            self._module.fail_json(
                msg=f"{' '.join(question)}: it does not say the node's state; {_LEFT_AS_IS}"
            )
        return found[0]

    def jobs(self, name: str) -> list[str]:
        """The jobs that are on a node."""
        words = ("--noheader", "--all", "--nodelist", name, "--states", _ON_A_NODE, "--format", "%i %u")
        return parse_jobs(self.must("squeue", *words))

    def drained_by_us(self) -> frozenset[str]:
        """The nodes that this module has drained and not given back."""
        return parse_drained(self.must("sinfo", "--noheader", "--all", "--Node", "--format", "%N|%E"))


def refuse_one_more(module: AnsibleModule, others: frozenset[str]) -> None:
    """Fails while so many other nodes are drained that one more would be too many."""
    if 0 < module.params["at_once"] <= len(others):
        name, first = module.params["node"], min(others)
        module.fail_json(
            msg=f"{name} stays in service, and nothing was changed there: deploy still has "
            f"{', '.join(sorted(others))} drained, and reboot_nodes_at_once is {module.params['at_once']}. "
            f"See why (squeue -w {first}; scontrol show node {first}), then run deploy again"
        )


def main() -> None:
    """Look, then change what is ours to change."""
    arguments: dict[str, Any] = {
        "node": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["drained", "resumed", "seen"], "required": True},
        "at_once": {"type": "int", "default": 0},
        "of_slurm": {"type": "list", "elements": "str", "default": []},
        "configuration": {"type": "path", "default": "/etc/slurm/slurm.conf"},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    name, wanted = module.params["node"], module.params["state"]
    controller = Controller(module)
    has_slurm = Path(module.params["configuration"]).exists() and module.get_bin_path("scontrol")
    shown = controller.node(name) if has_slurm else None
    if shown is None:
        module.exit_json(changed=False, jobs=[], is_ours=False, is_in_service=False)
    states, reason = shown.flags, shown.reason
    jobs = controller.jobs(name)
    in_service = bool(jobs) or is_serving(states)
    changed = False
    drains = wanted == "drained" and not is_held(states, reason)
    if drains and in_service:
        refuse_one_more(module, controller.drained_by_us() - {name})
    if drains:
        changed = True
        if not module.check_mode:
            controller.must("scontrol", "update", f"NodeName={name}", "State=DRAIN", f"Reason={REASON}")
        reason = REASON
    elif wanted == "resumed" and is_to_be_resumed(states, reason, module.params["of_slurm"]):
        changed = True
        if not module.check_mode:
            controller.must("scontrol", "update", f"NodeName={name}", "State=RESUME")
    if wanted == "resumed" and not is_own(reason) and not module.check_mode:
        try:
            changed = forget_displaced(name) or changed
        except AwayError as problem:
            module.fail_json(msg=str(problem))
    impact = {"kind": "drain" if changed and wanted == "drained" else "none", "service": "slurmd"}
    module.exit_json(
        changed=changed,
        jobs=jobs,
        is_ours=is_own(reason),
        is_in_service=in_service,
        deploy_impact=impact,
        deploy_manages={},
    )


if __name__ == "__main__":
    main()
