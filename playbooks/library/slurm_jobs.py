#!/usr/bin/python
"""Ansible module: which jobs a controller knows."""

import re
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: slurm_jobs
short_description: Which jobs a controller knows
description:
  - Asks Slurm on the controller for its pending and running jobs. Changes nothing, and never fails because of
    Slurm. A machine without a slurm.conf has no jobs that it could know.
options:
  configuration:
    description: Where slurm.conf lies.
    type: path
    default: /etc/slurm/slurm.conf
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_answer:
  description:
    - C(slurm), a dict. C(configured), whether there is a slurm.conf; C(answers), whether the controller
      answers; C(jobs), a list of C(id), C(state), C(user), C(partition), those that
      it may run in, C(nodes), a folded node list, and C(required), those that it asked for; C(version).
  type: dict
  returned: always
"""

_FORMAT = "%i|%T|%u|%P|%N|%n"
_KEYS = ("id", "state", "user", "partition", "nodes", "required")
_SECONDS = "15"
_CONTROLLER = re.compile(r"^\s*SlurmctldHost\s*=", re.IGNORECASE | re.MULTILINE)


def parse_jobs(text: str) -> list[dict[str, str]]:
    """The lines of squeue in our format."""
    rows = (line.strip().split("|") for line in text.splitlines() if line.count("|") == _FORMAT.count("|"))
    return [dict(zip(_KEYS, row)) for row in rows]  # noqa: B905 - Python 3.9


def parse_version(text: str) -> str:
    """`slurm-wlm 24.11.5` -> 24.11.5."""
    return text.rsplit(maxsplit=1)[-1] if text.split() else ""


def may_answer(configuration: str, *, runs_here: bool) -> bool:
    """Whether a slurmctld may answer: this host's, or that of another controller, where there is one."""
    return runs_here or len(_CONTROLLER.findall(configuration)) > 1


def main() -> None:
    """Ask once."""
    arguments: dict[str, Any] = {"configuration": {"type": "path", "default": "/etc/slurm/slurm.conf"}}
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    slurm: dict[str, Any] = {"configured": False, "answers": False, "jobs": [], "version": ""}
    squeue = module.get_bin_path("squeue")
    configuration = Path(module.params["configuration"])
    if squeue and configuration.exists():
        slurm["configured"] = True
        slurm["version"] = parse_version(module.run_command([squeue, "--version"])[1])
        # Without its controller squeue would try for minutes.
        command = ["timeout", _SECONDS, squeue, "--noheader", "--all", "--format", _FORMAT]
        runs_here = module.run_command(["systemctl", "is-active", "--quiet", "slurmctld"])[0] == 0
        if may_answer(configuration.read_text(encoding="utf-8", errors="replace"), runs_here=runs_here):
            code, out, _ = module.run_command(command, environ_update={"LC_ALL": "C"})
            slurm.update(answers=code == 0, jobs=parse_jobs(out) if code == 0 else [])
    module.exit_json(changed=False, deploy_answer={"slurm": slurm})


if __name__ == "__main__":
    main()
