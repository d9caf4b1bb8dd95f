#!/usr/bin/python
"""Ansible module: the daemons of a host go by the keys of auth/slurm that it has."""

from __future__ import annotations

import re
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.slurm_key_set import FILE, Key, keys_of, name_in, signing, token
from ansible.module_utils.systemd_units import parse_units, runs

DOCUMENTATION = r"""
module: slurm_keys_current
short_description: The daemons of a host go by the keys of auth/slurm that it has
description:
  - Asks slurmd, sackd, slurmdbd and slurmctld, where they run by auth/slurm, on their own sockets which keys
    they go by, and has those read slurm.jwks that go by others. So what was cut off is gone on with.
  - slurmctld reconfigures, slurmdbd and a slurmctld that stands by restart. slurmd and sackd come with what
    slurmctld tells them then, and are reloaded where that does not reach them.
options:
  servers:
    description:
      - Whether slurmdbd and slurmctld are brought to them, or slurmd and sackd, which come after those of all
        hosts.
    type: bool
    default: false
  pending:
    description: Whether a task of this run changes the keys. Only check mode needs it, where the file stays.
    type: bool
    default: false
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_impact:
  description: C(kind), reconfigure or restart, and C(service), the daemons, for C(deploy plan).
  type: dict
  returned: always
deploy_manages:
  description: What is recorded of the host, by kind.
  type: dict
  returned: always
"""

_CONTROLLER = "slurmctld"
_SERVERS = ("slurmdbd", _CONTROLLER)
SOCKETS: Mapping[str, Path] = {
    "slurmd": Path("/run/slurm/sack.socket"),
    "sackd": Path("/run/slurm/sack.socket"),
    "slurmdbd": Path("/run/slurmdbd/sack.socket"),
    _CONTROLLER: Path("/run/slurmctld/sack.socket"),
}
"""Where each daemon signs and judges for others."""
_CREATE, _VERIFY = 64001, 64002
_ANYBODY = 0xFFFFFFFF
_PROTOCOL = 0
"""In the place of the version of Slurm's protocol, which no release looks at here."""
_SECONDS = 10.0
_PATIENCE, _PAUSE = 60.0, 0.1
_TOLD_WITHIN = 30.0
"""Seconds within which slurmd and sackd go by what slurmctld tells them: slurmd ends first what it began."""


class Kiosk:
    """A daemon's socket, on which Slurm's commands have their identity signed (sackd(8))."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def runs(self) -> bool:
        """Whether a daemon is there that goes by auth/slurm."""
        try:
            self._connected().close()
        except OSError:
            return False
        return True

    def believes(self, key: Key) -> bool:
        """Whether it takes what is signed with the key."""
        text = token(key, int(time.time())).encode() + b"\0"
        answer = self._ask(_VERIFY, struct.pack(">I", len(text)) + text)
        return answer[:4] == bytes(4)

    def signs_with(self) -> str:
        """The name of the key that it signs with; empty where it signs nothing."""
        answer = self._ask(_CREATE, struct.pack(">II", _ANYBODY, 0))
        return name_in(answer[4:].rstrip(b"\0").decode("ascii", "replace"))

    def _connected(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(_SECONDS)
            connection.connect(str(self.path))
        except OSError:
            connection.close()
            raise
        return connection

    def _ask(self, what: int, content: bytes) -> bytes:
        """Its answer; empty where it gives none."""
        request = struct.pack(">HII", _PROTOCOL, 8 + len(content), what) + content
        answer = b""
        try:
            with self._connected() as connection:
                connection.sendall(request)
                while part := connection.recv(65536):
                    answer += part
        except OSError:
            return b""
        return answer


class Daemons:
    """The daemons of this host, and what they go by."""

    def __init__(self, module: AnsibleModule, keys: list[Key]) -> None:
        self.module = module
        current, ended = signing(keys), time.time() + 2 * _PATIENCE
        self.signs_with = current["kid"] if current else ""
        # One that ends while its daemons are asked says nothing of them.
        self.believed = [key for key in keys if key.get("exp", ended) >= ended]

    def there(self) -> list[str]:
        """Those that run by auth/slurm; one that was started by munge has no socket."""
        code, out, _ = self.module.run_command(
            ["systemctl", "show", "--property=LoadState,ActiveState,SubState", "--", *SOCKETS]
        )
        states = parse_units(out) if code == 0 else []
        active = [name for name, state in zip(SOCKETS, states) if runs(state)]  # noqa: B905 - Python 3.9
        return [name for name in active if Kiosk(SOCKETS[name]).runs()]

    def is_current(self, name: str) -> bool:
        """Whether it goes by the keys of the file."""
        kiosk = Kiosk(SOCKETS[name])
        return kiosk.signs_with() == self.signs_with and all(map(kiosk.believes, self.believed))

    def restarts(self, name: str) -> bool:
        """Whether it reads its keys when it starts and at no other time."""
        return name == "slurmdbd" or (name == _CONTROLLER and not self._leads())

    def _leads(self) -> bool:
        """Whether this controller is the first that answers; one that stands by is not reconfigured."""
        out = self.module.run_command(["timeout", "30", "scontrol", "ping"])[1]
        up = re.findall(r"Slurmctld\(\S+\) at (\S+) is UP", out)
        return up[:1] == [socket.gethostname().partition(".")[0]]

    def bring(self, name: str) -> None:
        """Has a daemon read its keys, and waits until it goes by them."""
        if name not in _SERVERS and self._comes_to_them(name, _TOLD_WITHIN):
            return
        if self.restarts(name):
            command = ["systemctl", "restart", name]
        elif name == _CONTROLLER:
            command = ["scontrol", "reconfigure"]
        else:
            command = ["systemctl", "reload", name]
        code, out, err = self.module.run_command(command)
        if not self._comes_to_them(name, _PATIENCE if code == 0 else 0.0):
            why = (err or out).strip()[-300:] or "it still goes by others"
            self.module.fail_json(msg=f"{name} does not take the keys of {FILE} ({' '.join(command)}): {why}")

    def _comes_to_them(self, name: str, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not self.is_current(name):
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE)
        return True


def main() -> None:
    """Ask, and have those read that have to."""
    arguments: dict[str, Any] = {
        "servers": {"type": "bool", "default": False},
        "pending": {"type": "bool", "default": False},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    keys = keys_of(FILE.read_text(encoding="utf-8", errors="replace")) if FILE.exists() else []
    daemons = Daemons(module, keys)
    is_pending = module.params["pending"] and module.check_mode
    own = [name for name in daemons.there() if (name in _SERVERS) == module.params["servers"]]
    own = [name for name in own if is_pending or not daemons.is_current(name)]
    kind = "restart" if any(map(daemons.restarts, own)) else "reconfigure" if own else "none"
    if not module.check_mode:
        for name in own:
            daemons.bring(name)
    module.exit_json(
        changed=bool(own),
        deploy_impact={"kind": kind, "service": ", ".join(own), "reasons": ["other keys"] if own else []},
        deploy_manages={},
    )


if __name__ == "__main__":
    main()
