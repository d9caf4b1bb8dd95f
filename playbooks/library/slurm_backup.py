#!/usr/bin/python
"""Ansible module: what an upgrade of Slurm needs to be taken back: its database, or files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.durable import keep_names

DOCUMENTATION = r"""
module: slurm_backup
short_description: What an upgrade of Slurm needs to be taken back
description:
  - Writes a dump of a database, or an archive of paths, into a directory that only root can read. What lies
    there already is left as it is, since it was written before anything was changed.
  - Then older backups of upgrades beside it go, but for the newest three and for all of the last 30 days. An
    upgrade that is typed again makes one each time, of which only the first may be of before it.
options:
  directory:
    description: Where it is kept.
    type: path
    required: true
  database:
    description: The database that is dumped.
    type: str
  paths:
    description: Files and directories that are archived.
    type: list
    elements: path
    default: []
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_answer:
  description: C(file), and C(bytes) of it; the names of the backups that went, C(removed).
  type: dict
  returned: always
deploy_manages:
  description: Nothing; a backup is kept, and not kept up.
  type: dict
  returned: always
"""

_KEPT, _SECONDS = 3, 30 * 86400
_NAME = re.compile(r"slurm-[^-/]+-(?P<made>\d{8}-\d{6})$")


def main() -> None:
    """Write under another name, on disk, then in place."""
    arguments: dict[str, Any] = {
        "directory": {"type": "path", "required": True},
        "database": {"type": "str"},
        "paths": {"type": "list", "elements": "path", "default": []},
    }
    module = AnsibleModule(
        argument_spec=arguments, supports_check_mode=True, required_one_of=[("database", "paths")]
    )
    os.umask(0o077)
    place = Path(module.params["directory"])
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o700)
    database = module.params["database"]
    target = place / (f"{database}.sql.gz" if database else "files.tar.gz")
    is_new = not target.exists()
    if is_new:
        with written(target) as fresh:
            if database:
                dump(module, database, fresh)
            else:
                there = [path for path in module.params["paths"] if Path(path).exists()]
                _must(module, ["tar", "--create", "--gzip", "--absolute-names", f"--file={fresh}", *there])
    shutil.chown(place, "root", "root")
    answer = {"file": str(target), "bytes": target.stat().st_size, "removed": prune(place, time.time())}
    module.exit_json(changed=is_new, deploy_answer=answer, deploy_manages={})


@contextmanager
def written(target: Path) -> Iterator[Path]:
    """A place for what is written: it takes the target's when it is whole and on disk, else no room."""
    fresh = target.with_suffix(".new")
    try:
        yield fresh
        with fresh.open("rb") as file:
            os.fsync(file.fileno())
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)
    keep_names(target.parent)


def dump(module: AnsibleModule, database: str, fresh: Path) -> None:
    """Packed as it comes: the text of all rows takes several times the room."""
    words = ["mariadb-dump", "--single-transaction", "--routines", "--max-allowed-packet=1G", database]
    with fresh.open("wb") as file, tempfile.TemporaryFile() as said:
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=said) as rows:
            packed = subprocess.run(["gzip"], stdin=rows.stdout, stdout=file, stderr=said, check=False)
        said.seek(0)
        if rows.returncode or packed.returncode:
            _refuse(module, words[0], said.read().decode(errors="replace"))


def prune(place: Path, now: float) -> list[str]:
    """Removes what is outdated beside a backup that is whole."""
    if _made(place.name) is None:
        return []
    there = [path.name for path in place.parent.iterdir() if path.is_dir() and not path.is_symlink()]
    # Whatever the clocks say of it.
    gone = [name for name in outdated(there, now) if name != place.name]
    for name in gone:
        shutil.rmtree(place.parent / name, ignore_errors=True)
    return gone


def outdated(names: list[str], now: float) -> list[str]:
    """Which of the directories of those names are backups that may go, the oldest first."""
    made = sorted((at, name) for name in names if (at := _made(name)) is not None)
    return [name for at, name in made[:-_KEPT] if now - at > _SECONDS]


def _made(name: str) -> float | None:
    """When a backup was made, in seconds since 1970; None of what is none."""
    match = _NAME.match(name)
    try:
        return time.mktime(time.strptime(match["made"], "%Y%m%d-%H%M%S")) if match else None
    except ValueError:
        return None


def _must(module: AnsibleModule, command: list[str]) -> None:
    code, out, err = module.run_command(command)
    if code != 0:
        _refuse(module, command[0], err or out)


def _refuse(module: AnsibleModule, program: str, said: str) -> None:
    module.fail_json(msg=f"no backup, so nothing was changed: {program}: {said.strip()[-400:]}")


if __name__ == "__main__":
    main()
