#!/usr/bin/python
"""Ansible module: what a host says of itself, and a controller of its nodes, for `deploy status`."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.node_hardware import read_hardware, shortfalls
from ansible.module_utils.slurm_nodes import parse_nodes
from ansible.module_utils.systemd_units import parse_units

DOCUMENTATION = r"""
module: node_status
short_description: What a host says of itself, and a controller of its nodes
description:
  - Asks systemd for the services, chrony for the clock, the kernel for the hardware and Slurm for the state
    of all nodes. Changes nothing. A chrony or Slurm that does not answer in time is an answer too.
options:
  services:
    description: The services to ask for.
    type: list
    elements: str
    default: []
  contract:
    description: The hardware contract of a compute node; left out, the hardware is not looked at.
    type: dict
  asks_slurm:
    description: Whether to ask slurmctld for the nodes, unless the services say that it cannot answer.
    type: bool
    default: false
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_answer:
  description: >-
    services, failed_units, shortfalls, clock and slurm; what was not asked is null. The action plugin of the
    same name adds ahead.
  type: dict
  returned: always
"""

_SECONDS = 4.0
_PROPERTIES = "LoadState,ActiveState,Result,StateChangeTimestampMonotonic"
# The order of the fields in `chronyc -c tracking`.
_SLOWNESS, _LEAP_STATUS = 4, 13


class NoAnswerError(Exception):
    """A program is missing, failed, or did not answer in time."""

    def __init__(self, program: str, why: str) -> None:
        super().__init__(f"{program}: {why}")


def ask(command: Sequence[str]) -> str:
    """Standard output of a command. Raises NoAnswerError."""
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "LC_ALL": "C", "SLURM_TIME_FORMAT": "standard"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except OSError as problem:
        raise NoAnswerError(command[0], problem.strerror or str(problem)) from None
    except subprocess.TimeoutExpired:
        raise NoAnswerError(command[0], f"no answer within {_SECONDS:.0f} s") from None
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise NoAnswerError(command[0], said[-1] if said else f"exit code {done.returncode}")
    return done.stdout


def parse_services(names: Sequence[str], text: str, monotonic: float) -> list[dict[str, Any]]:
    """`systemctl show NAME...`, a block per name in their order; ``seconds`` is for how long it is so."""
    services = []
    for name, properties in zip(names, parse_units(text)):  # noqa: B905 - strict= came with Python 3.10
        since = int(properties.get("StateChangeTimestampMonotonic") or 0) / 1e6
        services.append(
            {
                "name": name,
                "load": properties.get("LoadState", ""),
                "active": properties.get("ActiveState", ""),
                "result": properties.get("Result", ""),
                "seconds": round(monotonic - since, 1) if since else None,
            }
        )
    return services


def parse_failed_units(text: str) -> list[str]:
    """Names from `systemctl list-units --state=failed --plain --no-legend`."""
    return [line.split()[0] for line in text.splitlines() if line.strip()]


def parse_tracking(text: str) -> dict[str, Any]:
    """`chronyc -c tracking`: whether the clock is synchronized, and how far it is ahead of true time."""
    fields = text.strip().split(",")
    if len(fields) <= _LEAP_STATUS:
        raise NoAnswerError("chronyc", f"it said {text.strip()[:80]!r}")
    return {"synchronized": fields[_LEAP_STATUS] != "Not synchronised", "ahead": -float(fields[_SLOWNESS])}


def nodes_of(text: str) -> dict[str, dict[str, Any]]:
    """`scontrol --oneliner show nodes`, which unlike sinfo also lists nodes without a partition."""
    return {
        node.name: {"state": node.state, "reason": node.reason, "by": node.by, "since": _epoch(node.since)}
        for node in parse_nodes(text)
    }


def _epoch(local: str) -> float | None:
    """Slurm writes times as the clock on this host's wall shows them."""
    return time.mktime(time.strptime(local, "%Y-%m-%dT%H:%M:%S")) if local else None


def ask_services(names: Sequence[str]) -> list[dict[str, Any]]:
    """The state of each service."""
    if not names:
        return []
    text = ask(["systemctl", "show", f"--property={_PROPERTIES}", "--", *names])
    return parse_services(names, text, time.clock_gettime(time.CLOCK_MONOTONIC))


def ask_failed_units() -> list[str]:
    """The names of all units that failed."""
    return parse_failed_units(
        ask(["systemctl", "list-units", "--state=failed", "--plain", "--no-legend", "--full"])
    )


def ask_clock() -> dict[str, Any]:
    """What chrony says of the clock, or why it says nothing."""
    try:
        return parse_tracking(ask(["chronyc", "-c", "tracking"]))
    except NoAnswerError as problem:
        return {"error": str(problem)}


def ask_slurm(services: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What slurmctld says of all nodes, or why it says nothing."""
    for service in services:
        if service["name"] in {"munge", "slurmctld"} and service["active"] != "active":
            return {"error": f"{service['name']} does not run"}  # scontrol would wait for it
    try:
        return {"nodes": nodes_of(ask(["scontrol", "--oneliner", "--all", "show", "nodes"]))}
    except NoAnswerError as problem:
        return {"error": str(problem)}


def main() -> None:
    """Ask everything once."""
    arguments: dict[str, Any] = {
        "services": {"type": "list", "elements": "str", "default": []},
        "contract": {"type": "dict"},
        "asks_slurm": {"type": "bool", "default": False},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    contract = module.params["contract"]
    try:
        services = ask_services(module.params["services"])
        answer = {
            "services": services,
            "failed_units": ask_failed_units(),
            "shortfalls": None if contract is None else shortfalls(contract, read_hardware(ask)),
            "clock": ask_clock(),
            "slurm": ask_slurm(services) if module.params["asks_slurm"] else None,
        }
    except NoAnswerError as problem:
        module.fail_json(msg=str(problem))
    module.exit_json(changed=False, deploy_answer=answer)


if __name__ == "__main__":
    main()
