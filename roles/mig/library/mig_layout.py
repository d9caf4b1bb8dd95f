#!/usr/bin/python
"""Ansible module: whether GPUs are divided as declared, and their division."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: mig_layout
short_description: Whether GPUs are divided as declared, and their division
description:
  - C(compared) changes nothing and says what differs. C(applied) divides the GPUs, on a node without jobs,
    and leaves a reason below C(/run/deploy/reboot) where only a reboot completes it. C(verified) fails where
    something still differs.
options:
  state:
    description: What to do.
    type: str
    choices: [compared, applied, verified]
    required: true
  program:
    description: The program that knows the layout and nvidia-smi.
    type: path
    required: true
  divided:
    description: A file that C(applied) touches, newer than what has looked at the GPUs before.
    type: path
    default: null
  pending:
    description: Whether a task of this run changes the layout. Only check mode needs it.
    type: bool
    default: false
author: [the maintainers of this project]
"""

RETURN = r"""
differences:
  description: What is not as declared, in words.
  type: list
  returned: always
deploy_impact:
  description: C(kind) drain where something differs.
  type: dict
  returned: always
"""

_REASON = Path("/run/deploy/reboot/mig")
_NEEDS_REBOOT = 3


def _touch(path: str | None) -> None:
    if path:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()


def main() -> None:
    """Ask the program, or have it work."""
    arguments: dict[str, Any] = {
        "state": {"type": "str", "choices": ["compared", "applied", "verified"], "required": True},
        "program": {"type": "path", "required": True},
        "divided": {"type": "path"},
        "pending": {"type": "bool", "default": False},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    state, program = module.params["state"], module.params["program"]
    if module.check_mode and module.params["pending"]:
        differences = ["the layout changes"]
    else:
        code, out, err = module.run_command([program, "check"])
        if code != 0:
            module.fail_json(msg=(out + err).strip() + "; see: nvidia-smi")
        differences = out.splitlines()
    if state == "verified" and differences:
        module.fail_json(msg="; ".join(differences) + "; see: journalctl -u deploy-mig")
    if state == "applied" and differences and not module.check_mode:
        # Before, for a run that is cut off, and after, for what has looked meanwhile.
        _touch(module.params["divided"])
        code, out, err = module.run_command([program, "apply"])
        _touch(module.params["divided"])
        if code not in {0, _NEEDS_REBOOT}:
            module.fail_json(msg=(out + err).strip())
        if code == _NEEDS_REBOOT:
            _REASON.parent.mkdir(parents=True, exist_ok=True)
            _REASON.write_text("GPUs change their MIG mode\n", encoding="utf-8")
    impact = {"kind": "drain" if differences else "none", "service": "", "reasons": differences}
    module.exit_json(changed=bool(differences), differences=differences, deploy_impact=impact)


if __name__ == "__main__":
    main()
