#!/usr/bin/python
"""Ansible module: file systems that are in fstab and mounted, never changed under running processes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.mount_table import (
    Mount,
    at,
    differences,
    in_block,
    mounted,
    outside,
    parse_fstab,
    remounted,
    with_block,
)
from ansible.module_utils.root_file import keep, left, text_of

DOCUMENTATION = r"""
module: mounts_current
short_description: File systems that are in fstab and mounted, never changed under running processes
description:
  - Keeps one marked block in /etc/fstab, and mounts what it says. What is no longer wanted is unmounted.
  - A mounted file system that differs from what is wanted, or is no longer wanted, is left alone while
    processes use it; the module warns, and the next boot mounts what fstab says.
  - Where a directory with files would be hidden, every name in it has to be in the file system, too;
    otherwise nothing is mounted.
options:
  owner:
    description: The name of the block; the role that keeps it.
    type: str
    required: true
  mounts:
    description: The file systems, as they stand in fstab.
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description: Where it is mounted.
        type: path
        required: true
      source:
        description: What is mounted.
        type: str
        required: true
      type:
        description: The type of the file system.
        type: str
        required: true
      options:
        description: Options as in fstab.
        type: list
        elements: str
        default: []
  timeout:
    description: Seconds that one mount or unmount may take.
    type: int
    default: 60
author: [the maintainers of this project]
"""

RETURN = r"""
actions:
  description: What was done, or would be in check mode.
  type: list
  returned: always
in_use:
  description: What waits for the next boot because processes use it.
  type: list
  returned: always
deploy_manages:
  description: What the module manages on the machine.
  type: dict
  returned: always
"""

_FSTAB = Path("/etc/fstab")
_SHOWN = 5


def others_lines(text: str, owner: str, wanted: Sequence[Mount]) -> list[tuple[int, Mount]]:
    """The lines of an fstab, outside of a role's block, that mount something at a wanted place."""
    paths = {mount.path for mount in wanted}
    return [
        (number, mount)
        for number, line in enumerate(outside(text, owner).splitlines(), 1)
        for mount in parse_fstab(line)
        if (mount.path.rstrip("/") or "/") in paths
    ]


def users_of(path: str, proc: Path = Path("/proc")) -> list[str]:
    """The processes that have a file below a directory open, run from there, or work there."""
    below = f"{path.rstrip('/')}/"
    return [
        f"{_name(process)} ({process.name})"
        for process in proc.iterdir()
        if process.name.isdigit() and any(f"{place}/".startswith(below) for place in _places(process))
    ]


def _places(process: Path) -> Iterator[str]:
    links = [process / name for name in ("cwd", "root", "exe")]
    try:
        links += (process / "fd").iterdir()
        for line in _lines(process / "maps"):
            # Five fields come before the name of the file, which not every line has.
            yield from line.split(None, 5)[5:]
    except OSError:
        pass
    for link in links:
        try:
            yield str(link.readlink())
        except OSError:
            continue


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").splitlines()


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "ended"


def hidden(local: Path, other: Path) -> list[str]:
    """The names in a directory that another does not have."""
    if not local.is_dir():
        return []
    names = {entry.name for entry in local.iterdir()} - {"lost+found"}
    return sorted(names - {entry.name for entry in other.iterdir()})


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")


class Mounts:
    """The block of a role and what is mounted of it."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.owner: str = module.params["owner"]
        self.wanted = [
            Mount(entry["source"], entry["path"].rstrip("/") or "/", entry["type"], tuple(entry["options"]))
            for entry in module.params["mounts"]
        ]
        self.before = text_of(_FSTAB)
        self.after = with_block(self.before, self.owner, self.wanted)
        self.actions: list[str] = []
        self.in_use: list[str] = []
        self.left_behind: list[str] = []
        self.has_written = False

    def bring(self) -> None:
        """All of it: refuse, unmount, write, mount."""
        if clash := others_lines(self.before, self.owner, self.wanted):
            self.module.fail_json(
                msg="/etc/fstab mounts something else already at "
                + ", ".join(f"{mount.path} ({mount.source}, line {number})" for number, mount in clash)
                + "; remove those lines, or declare another path"
            )
        wanted = {mount.path for mount in self.wanted}
        gone = [mount for mount in in_block(self.before, self.owner) if mount.path not in wanted]
        for mount in sorted(gone, key=lambda mount: mount.path, reverse=True):
            self._leave(mount)
        fresh = [mount for mount in sorted(self.wanted, key=lambda mount: mount.path) if self._is_due(mount)]
        if fresh and not self.module.check_mode:
            for mount in fresh:
                self._try(mount)
        self._write()
        for mount in fresh:
            self._mount(mount)

    def recorded(self) -> dict[str, dict[str, Any] | None]:
        """By place what is mounted there; of what waits for the next boot, what shall be."""
        there = mounted()
        states: dict[str, dict[str, Any] | None] = dict.fromkeys(self.left_behind)
        for mount in self.wanted:
            now = at(mount.path, there)
            is_current = now is not None and not differences(mount, now)
            wanted = {"type": mount.kind, "source": mount.source, "options": sorted(mount.options)}
            states[mount.path] = {} if is_current else wanted
        return states

    def _is_due(self, mount: Mount) -> bool:
        """Whether a file system has to be mounted now; one that differs is unmounted first if it can be."""
        there = at(mount.path, mounted())
        if there is None:
            return True
        differing = differences(mount, there)
        if not differing:
            return False
        ours = in_block(self.before, self.owner)
        if not any(old.path == mount.path for old in ours) and there.source != mount.source:
            self.module.fail_json(
                msg=f"{there.source} ({there.kind}) is mounted at {mount.path}, and not by this role; "
                "unmount it and remove its line from /etc/fstab, or declare another path"
            )
        if options := remounted(mount, there):
            self.actions.append(f"remount {mount.path} ({'; '.join(differing)})")
            if not self.module.check_mode:
                self._must(["mount", "-o", options, mount.path])
            return False
        return self._free(mount.path, "; ".join(differing))

    def _leave(self, mount: Mount) -> None:
        if at(mount.path, mounted()) and not self._free(mount.path, "no longer wanted"):
            self.left_behind.append(mount.path)

    def _free(self, path: str, why: str) -> bool:
        """Unmounts what nobody uses; says who uses it otherwise."""
        if users := users_of(path):
            self.in_use.append(f"{path} ({why}): {_some(users)}")
            return False
        self.actions.append(f"umount {path} ({why})")
        if not self.module.check_mode:
            self._must(["umount", path])
        return True

    def _try(self, mount: Mount) -> None:
        """Mounts a file system at a private place first: whether it can be, and what it would hide."""
        with self._aside(mount) as place:
            lost = hidden(Path(mount.path), place)
        if lost:
            self.module.fail_json(
                msg=f"{mount.path} holds {_some(lost)}, which {mount.source} does not have and would "
                "hide. Nothing was mounted. Move these to the file system first, or remove them here"
            )

    @contextmanager
    def _aside(self, mount: Mount) -> Iterator[Path]:
        place = tempfile.mkdtemp(prefix="deploy-mount-", dir="/run")
        try:
            self._must(self._command(mount, place))
            try:
                yield Path(place)
            finally:
                self._must(["umount", place])
        finally:
            if Path(place).is_dir() and not Path(place).is_mount():
                Path(place).rmdir()

    def _command(self, mount: Mount, place: str) -> list[str]:
        options = ["-o", ",".join(mount.options)] if mount.options else []
        return ["mount", "-t", mount.kind, *options, mount.source, place]

    def _mount(self, mount: Mount) -> None:
        self.actions.append(f"mount {mount.source} {mount.path}")
        if not self.module.check_mode:
            Path(mount.path).mkdir(parents=True, exist_ok=True)
            self._must(self._command(mount, mount.path))

    def _write(self) -> None:
        if self.before or self.after:
            self.has_written = keep(self.module, _FSTAB, self.after)
        if self.after != self.before and not self.module.check_mode:
            # systemd makes units of the lines, and would go on with the old ones.
            self.module.run_command(["systemctl", "daemon-reload"])

    def _must(self, command: list[str]) -> None:
        # What is mounted may be on a server that does not answer, and so may what is to be unmounted.
        limit = self.module.params["timeout"]
        code, out, err = self.module.run_command(["timeout", "--kill-after=5", str(limit), *command])
        if code != 0:
            why = f"no answer within {limit} s" if code == 124 else (err or out).strip()  # noqa: PLR2004
            self.module.fail_json(msg=f"{' '.join(command)}: {why}")


def main() -> None:
    """Bring fstab and the mounted file systems to what is wanted."""
    entry: dict[str, Any] = {
        "path": {"type": "path", "required": True},
        "source": {"type": "str", "required": True},
        "type": {"type": "str", "required": True},
        "options": {"type": "list", "elements": "str", "default": []},
    }
    arguments: dict[str, Any] = {
        "owner": {"type": "str", "required": True},
        "mounts": {"type": "list", "elements": "dict", "required": True, "options": entry},
        "timeout": {"type": "int", "default": 60},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    mounts = Mounts(module)
    mounts.bring()
    for line in mounts.in_use:
        module.warn(f"left as it is until the next boot, because processes use it: {line}")
    module.exit_json(
        changed=mounts.has_written or bool(mounts.actions),
        actions=mounts.actions,
        in_use=mounts.in_use,
        diff={
            "before_header": str(_FSTAB),
            "after_header": str(_FSTAB),
            "before": mounts.before,
            "after": mounts.after,
        },
        deploy_manages={"mounts": mounts.recorded(), "files": left([_FSTAB])},
    )


if __name__ == "__main__":
    main()
