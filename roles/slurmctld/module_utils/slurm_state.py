"""The state of slurmctld: how it comes to another directory."""

import contextlib
import os
import pwd
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.slurm_conf import parse_conf

_PARAMETER = "StateSaveLocation"
_JOBS = "job_state"
"""What slurmctld has in its state some minutes after it was started for the first time."""
LEDGER = "deploy_ledger"
"""The directory of root's in which controllers share deploy's ledger of drains; slurm cannot read it."""
MARK = "deploy_shared"
"""The file by whose number controllers know that their directory is one."""
LAST_DEPLOYED = "deploy_configuration"
"""Which configurations may lead with this state (``slurm_last_deployed``)."""
_LEFT = "deploy_moved"
"""In a directory from which the state was copied: where to."""


@contextlib.contextmanager
def as_slurm() -> Iterator[None]:
    """As the user slurm: on the storage of a file server root may be nobody."""
    user = pwd.getpwnam("slurm")
    os.setegid(user.pw_gid)
    os.seteuid(user.pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


class ControllerState:
    """Where the state of a controller is, and where it shall be."""

    def __init__(self, before: Path, after: Path, *, is_prepared: bool) -> None:
        self.before = before
        self.after = after
        self._is_prepared = is_prepared
        self._was_moved = False

    @classmethod
    def of(cls, before: str, after: str, directories: Sequence[Path]) -> "ControllerState":
        """By the texts of two slurm.conf, and the directories that are made for slurmctld."""
        old, new = (Path(parse_conf(text).get(_PARAMETER.lower(), "")) for text in (before, after))
        return cls(old, new, is_prepared=new in directories)

    @property
    def moves(self) -> bool:
        """Whether there is a state, which shall be in another directory and is not there yet."""
        if not self._is_prepared or self.before in {Path(), self.after}:
            return False
        return _has(self.before, _JOBS) and not _has(self.before, _LEFT)

    @property
    def is_free(self) -> bool:
        """Whether nothing of another cluster, or of another time, is lost by a copy."""
        return not _has(self.after, _JOBS) or self.was_left

    @property
    def was_left(self) -> bool:
        """Whether where it shall be it was at a time before."""
        return _has(self.after, _LEFT)

    def takes(self, change: Mapping[str, Any]) -> bool:
        """Whether a guarded change is this move, by which nothing is lost."""
        is_done = _has(self.before, _LEFT)
        return bool(change["parameter"] == _PARAMETER and (is_done or (self.moves and self.is_free)))

    def move(self, module: AnsibleModule) -> None:
        """Copies it while no slurmctld runs. What was there from a time before is overwritten."""
        own = [str(self.before), "-mindepth", "1", "-maxdepth", "1"]
        # What says of a directory which one it is stays with it.
        for name in (LEDGER, MARK, LAST_DEPLOYED):
            own += ["!", "-name", name]
        copy = ["cp", "-a", "--target-directory", str(self.after), "{}", "+"]
        copy = ["runuser", "-u", "slurm", "--", "find", *own, "-exec", *copy]
        # Find comes back to where it was, which may be a home that slurm may not enter.
        code, out, err = module.run_command(copy, cwd="/")
        if code:
            module.run_command(["systemctl", "start", "slurmctld"])
            module.fail_json(msg=f"the state could not be copied to {self.after}: {(out + err).strip()}")
        with as_slurm():
            (self.after / _LEFT).unlink(missing_ok=True)
            os.sync()
            (self.before / _LEFT).write_text(f"{self.after}\n")
        self._was_moved = True

    def give_back(self) -> None:
        """The old directory has the state again: no slurmctld came up with the new one."""
        if self._was_moved:
            with as_slurm():
                (self.after / _LEFT).write_text(f"{self.before}\n")
                (self.before / _LEFT).unlink()


def _has(directory: Path, name: str) -> bool:
    try:
        with as_slurm():
            return (directory / name).exists()
    except (OSError, KeyError):  # there is no user slurm yet
        return False
