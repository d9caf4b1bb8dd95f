"""What was declared before, remembered beside the rows that it speaks of.

So each member of a database has it, and so do a backup of it and a host to which it was moved.
"""

from __future__ import annotations

import json
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.given import DIRECTORY, given, remember
from ansible.module_utils.mariadb_client import lines, text

_NAME = "slurm_accounts"
_TABLE = "deploy_given"


class Memory:
    """In a table of Slurm's database on this host; in a file of the host where it has none, by no name."""

    def __init__(self, module: AnsibleModule, database: str) -> None:
        self._module, self._database = module, database
        self._place = f"`{database}`.`{_TABLE}`"
        self._is_table = bool(database) and self._answers() and self._has_table()
        self.known = self._read() if self._is_table else given(_NAME)
        """What was remembered; nothing where nobody ever did."""

    def keep(self, content: dict[str, Any]) -> None:
        """Replaces what is remembered; on disk before anything is given that it names."""
        if not self._database:
            remember(_NAME, content)
            return
        if self._is_table and content == self.known:
            return
        made = f"CREATE TABLE {self._place} (name VARCHAR(64) PRIMARY KEY, content LONGTEXT NOT NULL);\n"
        values = f"({text(_NAME)}, {text(json.dumps(content))})"
        written = f"REPLACE INTO {self._place} VALUES {values}"  # noqa: S608
        lines(self._module, written if self._is_table else made + written)
        self._is_table, self.known = True, content
        # That of a deploy that kept it on the host.
        (DIRECTORY / f"{_NAME}.json").unlink(missing_ok=True)

    def _answers(self) -> bool:
        """Before a first deployment there is no server; a module that changes something fails without one."""
        if not self._module.check_mode:
            return True
        is_there = self._module.get_bin_path("mariadb") is not None
        return is_there and self._module.run_command(["mariadb", "--execute", "DO 0"])[0] == 0

    def _has_table(self) -> bool:
        where = f"table_schema = {text(self._database)} AND table_name = {text(_TABLE)}"
        question = f"SELECT 1 FROM information_schema.tables WHERE {where}"  # noqa: S608
        return bool(lines(self._module, question))

    def _read(self) -> dict[str, Any]:
        question = f"SELECT content FROM {self._place} WHERE name = {text(_NAME)}"  # noqa: S608
        try:
            content = json.loads("".join(lines(self._module, question)))
        except ValueError:
            return {}
        return content if isinstance(content, dict) else {}
