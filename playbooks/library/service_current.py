#!/usr/bin/python
"""Ansible module: a systemd service that is enabled, runs, and has read its current inputs."""

import json
import socket
import stat
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.systemd_units import parse_units, runs

DOCUMENTATION = r"""
module: service_current
short_description: A service that is enabled, runs, and has read its current inputs
description:
  - Starts and enables the service, masked or not, and restarts it when one of its input files is newer than
    its start.
  - Unlike a handler it cannot be lost; a run that was cut off between writing a file and restarting the
    service is completed by the next run.
options:
  name:
    description: The unit.
    type: str
    required: true
  inputs:
    description:
      - Files that the service reads when it starts. Those that are missing do not count, unless they were
        there when this module last saw to the service; then it still runs with what they said.
    type: list
    elements: path
    default: []
  pending:
    description: Whether a task of this run changes an input. Only check mode needs it, where files stay old.
    type: bool
    default: false
  reload_inputs:
    description:
      - Files and directories that the service reads when it starts or is reloaded; it is reloaded when one is
        newer than the last time it did either.
    type: list
    elements: path
    default: []
  reload_pending:
    description: As C(pending), of C(reload_inputs).
    type: bool
    default: false
  starts:
    description:
      - Whether a service that does not run is started, and enabled. Otherwise it is left as it is, as is one
        that is not there, one that runs is restarted for its inputs, and nothing is recorded of it; for a
        role that only changes what the service of another reads.
    type: bool
    default: true
  wait:
    description:
      - Whether to come back when it runs. Otherwise it is told to, and whether it does is for a later task to
        see, which may be this module once more.
    type: bool
    default: true
  address:
    description: Where its C(port) is; empty for a service that listens everywhere.
    type: str
    default: ""
  port:
    description:
      - The TCP port that it answers on when it has come up, which systemd does not know of most services.
        It is asked on every run, and no answer is an error with the end of the journal. 0 for none.
    type: int
    default: 0
  turn:
    description:
      - What is asked right before a restart, and the service is not restarted where the answer is no. A start
        asks nobody, nor does a preview.
    type: dict
    suboptions:
      command:
        description: The command that succeeds where the service may be restarted.
        type: list
        elements: str
        required: true
      otherwise:
        description: What is said to be left to a later run (C(deploy_pending)) where it does not.
        type: str
        required: true
  whole:
    description:
      - A command that succeeds once the service does all of its work. After a start or a restart it is waited
        for.
    type: list
    elements: str
    default: []
author: [the maintainers of this project]
"""

RETURN = r"""
action:
  description: none, start, restart or reload.
  type: str
  returned: always
reasons:
  description: The inputs that are newer than what the service has read, or gone.
  type: list
  returned: always
deploy_pending:
  description: What is left to a later run.
  type: list
  returned: always
deploy_impact:
  description: C(kind), the action, and C(service), the unit; how C(deploy plan) knows what a change does.
  type: dict
  returned: always
deploy_manages:
  description: What is recorded of the host, by kind.
  type: dict
  returned: always
"""

_START, _LAST_CHANGE = "InactiveExitTimestampMonotonic", "StateChangeTimestampMonotonic"
_FILES = ("FragmentPath", "DropInPaths")
_PROPERTIES = ",".join(
    (
        "LoadState",
        "ActiveState",
        "SubState",
        "UnitFileState",
        _START,
        _LAST_CHANGE,
        "NeedDaemonReload",
        "Job",
        *_FILES,
    )
)
_UNITS = "/etc/systemd/system/"
_IMPACTS = {"reload": "reconfigure"}
_TURN = {
    "command": {"type": "list", "elements": "str", "required": True},
    "otherwise": {"type": "str", "required": True},
}
_ENABLED = frozenset({"enabled", "static", "indirect", "generated", "alias", "enabled-runtime"})
_SEEN = Path("/run/deploy/services")
"""What was there when a service was last seen to; until the next boot, which reads everything anew."""
_PATIENCE, _PAUSE = 60.0, 0.2  # seconds
_PATIENCE_FOR_TURN, _PATIENCE_FOR_ALL = 10.0, 300.0


def moment(properties: dict[str, str], name: str, wall: float, monotonic: float) -> float:
    """A moment of the service's life, in seconds of the present wall clock, however often that was set."""
    return wall - monotonic + int(properties.get(name, "0") or 0) / 1e6


def newer(inputs: list[str], start: float) -> list[str]:
    """The inputs that were written after a service's start."""
    return [name for name in inputs if Path(name).exists() and Path(name).stat().st_mtime > start]


class Seen:
    """The inputs that were there when a service was last seen to."""

    def __init__(self, name: str) -> None:
        self._file = _SEEN / f"{name}.json"
        try:
            self._said: dict[str, Any] = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            self._said = {}

    def removed(self, kind: str) -> list[str]:
        """The inputs of a kind that it has read and that are not there any more, declared still or not."""
        return [f"{name} (removed)" for name in self._said.get(kind, []) if not Path(name).exists()]

    def keep(self, inputs: list[str], reload_inputs: list[str]) -> None:
        """Writes down what is there now."""
        now = {
            "inputs": [name for name in inputs if Path(name).exists()],
            "reload_inputs": [name for name in reload_inputs if Path(name).exists()],
        }
        if now != self._said:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file.write_text(json.dumps(now), encoding="utf-8")


def read_as(path: Path) -> dict[str, Any]:
    """The state of an input as the service read it. Its content may be a secret: its time has to do."""
    if not path.is_file():
        return {}
    found = path.stat()
    return {"type": "file", "mode": format(stat.S_IMODE(found.st_mode), "04o"), "written": found.st_mtime_ns}


def drop_in_directories(inputs: list[str]) -> list[str]:
    """The directories of inputs that the service reads whole: what came or went beside them counts, too."""
    parents = dict.fromkeys(str(Path(name).parent) for name in inputs)
    return [name for name in parents if name.endswith((".conf.d", ".service.d"))]


def is_unknown(inputs: list[str], properties: dict[str, str]) -> bool:
    """Whether a file of the unit is there that systemd has not read, which it does not always say itself.

    A directory of drop-ins that is made after systemd looked for units is not looked for again (systemd 252),
    nor is a unit noticed that takes the place of a package's.
    """
    known = {path for name in _FILES for path in properties.get(name, "").split()}
    return any(name.startswith(_UNITS) and name not in known and Path(name).exists() for name in inputs)


def fail(module: AnsibleModule, what: str) -> None:
    """End with what is wrong and the last words of the service."""
    command = ["journalctl", "-u", module.params["name"], "-n", "10", "--no-pager", "-o", "cat"]
    journal = module.run_command(command)[1]
    module.fail_json(msg=f"{what} | {journal.strip()[-600:]}")


def systemctl(module: AnsibleModule, *words: str) -> str:
    """What systemctl says; an error of it ends the module."""
    code, out, err = module.run_command(["systemctl", *words])
    if code != 0:
        fail(module, f"systemctl {' '.join(words)}: {err.strip()}")
    return str(out)


def _called(name: str) -> str:
    """A service as people call it."""
    return name.removesuffix(".service")


def has_answer(module: AnsibleModule, patience: float = _PATIENCE) -> bool:
    """Whether the service's port answers within so many seconds, and before the service has failed."""
    name, address, port = (module.params[key] for key in ("name", "address", "port"))
    deadline = time.monotonic() + patience
    while True:
        try:
            socket.create_connection((address or "127.0.0.1", port), timeout=patience).close()
        except OSError:
            has_failed = module.run_command(["systemctl", "is-failed", "--quiet", name])[0] == 0
            if has_failed or time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE)
        else:
            return True


def succeeds(module: AnsibleModule, command: list[str], patience: float) -> bool:
    """Whether a command succeeds within so many seconds."""
    deadline = time.monotonic() + patience
    while module.run_command(command)[0] != 0:
        if time.monotonic() >= deadline:
            return False
        time.sleep(_PAUSE)
    return True


def left_to_later(module: AnsibleModule, action: str) -> list[str]:
    """What is said of a restart that is not the service's turn; nothing where it may be done."""
    turn = module.params["turn"]
    if action != "restart" or not turn or module.check_mode:
        return []
    return [] if succeeds(module, turn["command"], _PATIENCE_FOR_TURN) else [turn["otherwise"]]


def wait_until_whole(module: AnsibleModule, *, is_new: bool) -> None:
    """Wait for a service that was started; one that does not do all of its work ends the module."""
    command = module.params["whole"]
    is_asked = is_new and command and not module.check_mode
    if is_asked and not succeeds(module, command, _PATIENCE_FOR_ALL):
        fail(module, f"{module.params['name']} runs, and does not do all of its work")


def main() -> None:
    """Ask systemd once, then do what is needed."""
    arguments: dict[str, Any] = {
        "name": {"type": "str", "required": True},
        "inputs": {"type": "list", "elements": "path", "default": []},
        "pending": {"type": "bool", "default": False},
        "reload_inputs": {"type": "list", "elements": "path", "default": []},
        "reload_pending": {"type": "bool", "default": False},
        "starts": {"type": "bool", "default": True},
        "wait": {"type": "bool", "default": True},
        "address": {"type": "str", "default": ""},
        "port": {"type": "int", "default": 0},
        "turn": {"type": "dict", "options": _TURN},
        "whole": {"type": "list", "elements": "str", "default": []},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    name, inputs, reload_inputs = (module.params[key] for key in ("name", "inputs", "reload_inputs"))
    properties = parse_units(systemctl(module, "show", name, "--property", _PROPERTIES))[0]
    state, starts = properties.get("LoadState"), module.params["starts"]
    if not starts and not runs(properties):
        module.exit_json(
            changed=False,
            action="none",
            reasons=[],
            deploy_pending=[],
            deploy_impact={"kind": "none", "service": _called(name), "reasons": []},
            deploy_manages={},
        )
    if state == "not-found" and not module.check_mode:
        module.fail_json(msg=f"the unit {name} is {state}")
    activity = properties.get("ActiveState")
    now = time.time(), time.monotonic()
    seen = Seen(name)
    reasons = newer([*inputs, *drop_in_directories(inputs)], moment(properties, _START, *now))
    reasons += seen.removed("inputs")
    # A service that runs changes its state when it starts and when it is reloaded.
    to_read_again = newer(reload_inputs, moment(properties, _LAST_CHANGE, *now))
    to_read_again += seen.removed("reload_inputs")
    if not runs(properties):
        action, reasons = "start", []
    elif reasons or module.params["pending"]:
        action = "restart"
    elif to_read_again or module.params["reload_pending"]:
        action, reasons = "reload", to_read_again
    else:
        action = "none"
    if left := left_to_later(module, action):
        action, reasons = "none", []
    enable = starts and properties.get("UnitFileState") not in _ENABLED
    is_to_be_read = properties.get("NeedDaemonReload") == "yes" or (
        action != "none" and is_unknown([*inputs, *reload_inputs], properties)
    )
    patience = () if module.params["wait"] else ("--no-block",)
    # A start joins what another has begun, or fails with it. One that is active may be about to restart, once
    # what is bound to it has ended.
    is_under_way = activity == "activating" or properties.get("Job", "0") not in {"", "0"}
    joins = module.params["wait"] and action == "none" and is_under_way
    steps = [
        (("unmask", name), state == "masked"),
        (("daemon-reload",), is_to_be_read),
        (("enable", name), enable),
        # One that failed too often is not started again for some seconds, though its reason may be fixed.
        (("reset-failed", name), activity == "failed"),
        ((*patience, "start" if joins else action, name), joins or action != "none"),
    ]
    for words in [words for words, is_needed in steps if is_needed and not module.check_mode]:
        systemctl(module, *words)
    # A preview looks, too: what it finds nothing to do for is not looked at again.
    is_up = not module.check_mode or action == "none"
    if module.params["port"] and is_up and not has_answer(module):
        fail(module, f"{name} does not answer on port {module.params['port']}")
    wait_until_whole(module, is_new=joins or action in {"start", "restart"})
    if starts and not (module.check_mode or left):
        seen.keep(inputs, reload_inputs)
    impact = {"kind": _IMPACTS.get(action, action), "service": _called(name), "reasons": reasons}
    module.exit_json(
        changed=enable or action != "none",
        action=action,
        reasons=reasons,
        deploy_pending=left,
        deploy_impact=impact,
        deploy_manages={
            "services": {name: {"runs": True}},
            "files": {path: read_as(Path(path)) for path in [*inputs, *reload_inputs]},
        }
        if starts
        else {},
    )


if __name__ == "__main__":
    main()
