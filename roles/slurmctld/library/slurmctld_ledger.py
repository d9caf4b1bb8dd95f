#!/usr/bin/python
"""Ansible module: brings the ledger of drains to where the controllers have it."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.drain_ledger import (
    FILES,
    ID,
    POINTER,
    AwayError,
    held,
    id_of,
    locked,
    opened,
    pointer,
)
from ansible.module_utils.durable import keep_names, replace_file
from ansible.module_utils.slurm_state import LEDGER

DOCUMENTATION = r"""
module: slurmctld_ledger
short_description: Bring the ledger of drains to where the controllers have it
description:
  - The ledger of C(deploy node drain) is on the disk of the one controller. Several share it, in a directory
    of root's within the state that they share; on the disk of each a note says which.
  - A ledger that is on a controller's disk goes to the shared directory with all that is in it, and comes
    back to the controller that is alone again. What is cut off leaves it where it was or where it shall be,
    and is ended by the next run.
  - Where root may not write into the shared state, as on storage that takes root for nobody, the ledger stays
    with the controller that has it.
options:
  directory:
    description: StateSaveLocation, which several controllers share; left out for the one controller.
    type: path
  makes:
    description: Whether an empty ledger is made where there is none yet.
    type: bool
    default: false
  local:
    description: Deploy's own directory on this host.
    type: path
    default: /var/lib/deploy
author: [the maintainers of this project]
"""

RETURN = r"""# Nothing but the usual."""


def main() -> None:
    """Look, and move what is elsewhere."""
    spec = {
        "directory": {"type": "path"},
        "makes": {"type": "bool", "default": False},
        "local": {"type": "path", "default": "/var/lib/deploy"},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    state = module.params["directory"]
    ledger = Ledger(Path(module.params["local"]), is_dry=module.check_mode)
    try:
        makes = module.params["makes"]
        changed = ledger.share(Path(state), makes=makes) if state else ledger.come_back()
    except (AwayError, OSError, ValueError) as problem:
        module.fail_json(msg=f"the ledger of drains stays where it is: {problem}")
    module.exit_json(changed=changed)


class Ledger:
    """The ledger of this controller; with ``is_dry`` nothing is changed."""

    def __init__(self, local: Path, *, is_dry: bool) -> None:
        self._local = local
        self._is_dry = is_dry

    def share(self, state: Path, *, makes: bool) -> bool:
        """Has it in the state that controllers share; returns whether something changed. Raises AwayError."""
        if self._is_moving() and self._is_dry:
            return True
        changed, said, shared = self._settle(), pointer(self._local), state / LEDGER
        if said and Path(said["directory"]) == shared:
            with locked(self._local):  # which says so if it is not there
                return self._clear() or changed
        there = _id_in(shared)
        if there:
            self._join(shared, there)
            return True
        if said and makes:
            # It goes along with the state.
            self.come_back()
            return self._hand_over(state) or True
        if not said and (makes or self._has_entries()):
            return self._hand_over(state) or changed
        return changed

    def come_back(self) -> bool:
        """Has it on this host's own disk; returns whether something changed. Raises AwayError."""
        if self._is_moving() and self._is_dry:
            return True
        changed, said = self._settle(), pointer(self._local)
        if not said or self._is_dry:
            return bool(said) or changed
        shared = Path(said["directory"])
        with locked(self._local) as place:
            _copy(place, self._local)
            self._point({**said, "moves": True})
            _remove(place, ID)
            _remove(self._local, POINTER)
            _remove(place, *FILES)
            # Empty but for the lock, which others may be waiting for.
            with contextlib.suppress(OSError):
                for path in place.iterdir():
                    path.unlink()
                shared.rmdir()
        return True

    def _is_moving(self) -> bool:
        """Whether a move was cut off."""
        return bool((pointer(self._local) or {}).get("moves"))

    def _settle(self) -> bool:
        """Ends a move that was cut off: where the shared directory has its id, the ledger is there."""
        said = pointer(self._local)
        if not said or not said.get("moves"):
            return False
        with held(self._local):
            if id_of(opened(Path(said["directory"]))) == said["id"]:
                self._leave_to({key: said[key] for key in ("directory", "id")})
            else:
                _remove(self._local, POINTER)
        return True

    def _join(self, shared: Path, ledger: str) -> None:
        """Takes the ledger that is there. Raises AwayError where this host has another one."""
        if own := self._own():
            message = (
                f"{own} has drains, and {shared} is the ledger of other controllers. Drain anew what the "
                f"first names and shall stay so, move {own} away, and deploy cluster again"
            )
            raise AwayError(message)
        if not self._is_dry:
            with held(self._local):
                self._leave_to({"directory": str(shared), "id": ledger})

    def _own(self) -> str:
        """Where this host has drains of its own; empty where it has none, or they went elsewhere."""
        said = pointer(self._local)
        if said is None:
            return str(self._local / "drains.json") if self._has_entries() else ""
        with contextlib.suppress(AwayError):
            return str(said["directory"]) if id_of(opened(Path(said["directory"]))) == said["id"] else ""
        return ""

    def _hand_over(self, state: Path) -> bool:
        """Moves it from this host's disk into the shared directory; not where root may not write there."""
        if self._is_dry:
            # A server that takes root for nobody says no.
            return not state.exists() or os.access(state, os.W_OK)
        shared = state / LEDGER
        if not _make(shared):
            return False
        place, said = opened(shared), {"directory": str(shared), "id": secrets.token_hex(8)}
        # By now slurm.conf may name another one first, where the ledger is then.
        with held(self._local):
            self._point({**said, "moves": True})
            _copy(self._local, place)
            replace_file(place / ID, said["id"].encode(), 0o600)
            self._leave_to(said)
        return True

    def _leave_to(self, said: dict[str, Any]) -> None:
        """The ledger is there from now on, and no more here."""
        self._point(said)
        self._clear()

    def _clear(self) -> bool:
        """Takes away what is left here of a ledger that is elsewhere; returns whether there was something."""
        left = [name for name in FILES if (self._local / name).exists()]
        if left and not self._is_dry:
            _remove(self._local, *left)
        return bool(left)

    def _point(self, said: dict[str, Any]) -> None:
        replace_file(self._local / POINTER, json.dumps(said).encode(), 0o600)

    def _has_entries(self) -> bool:
        """Whether drains or reservations are kept on this host's disk."""
        return any(_read(self._local, name) != FILES[name] for name in ("drains.json", "reservations.json"))


def _id_in(shared: Path) -> str:
    """Which ledger is in a directory; empty where there is no such directory. Raises AwayError."""
    return id_of(opened(shared)) if os.path.lexists(shared) else ""


def _make(shared: Path) -> bool:
    """Makes the directory; False where root may not, or is nobody there. Raises AwayError."""
    try:
        shared.mkdir(mode=0o700)
    except FileExistsError:
        return True
    except OSError:
        return False
    if shared.lstat().st_uid != os.geteuid():
        shared.rmdir()
        return False
    keep_names(shared.parent)
    return True


def _read(directory: Path, name: str) -> str:
    try:
        return json.dumps(json.loads((directory / name).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return FILES[name]


def _copy(source: Path, target: Path) -> None:
    for name in FILES:
        replace_file(target / name, _read(source, name).encode(), 0o600)


def _remove(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).unlink(missing_ok=True)
    keep_names(directory)


if __name__ == "__main__":
    main()
