#!/usr/bin/python
"""Ansible module: what an upgrade of Slurm needs to be taken back: its database, or files."""

from __future__ import annotations

import os
import shutil
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
  description: C(file), and C(bytes) of it.
  type: dict
  returned: always
deploy_manages:
  description: Nothing; a backup is kept, and not kept up.
  type: dict
  returned: always
"""


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
        fresh = target.with_suffix(".new")
        if database:
            plain = place / f"{database}.sql"
            _must(
                module,
                ["mariadb-dump", "--single-transaction", "--routines", f"--result-file={plain}", database],
            )
            _must(module, ["gzip", "--force", "--suffix=.new", str(plain)])
            plain.with_suffix(".sql.new").replace(fresh)
        else:
            there = [path for path in module.params["paths"] if Path(path).exists()]
            _must(module, ["tar", "--create", "--gzip", "--absolute-names", f"--file={fresh}", *there])
        _must(module, ["sync", str(fresh)])
        fresh.replace(target)
        keep_names(place)
    shutil.chown(place, "root", "root")
    answer = {"file": str(target), "bytes": target.stat().st_size}
    module.exit_json(changed=is_new, deploy_answer=answer, deploy_manages={})


def _must(module: AnsibleModule, command: list[str]) -> None:
    code, out, err = module.run_command(command)
    if code != 0:
        module.fail_json(
            msg=f"no backup, so nothing was changed: {command[0]}: {(err or out).strip()[-400:]}"
        )


if __name__ == "__main__":
    main()
