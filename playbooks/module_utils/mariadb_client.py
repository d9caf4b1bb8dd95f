"""The MariaDB server on this machine, asked as its root by its socket, and texts in what it is asked."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule

# Whatever the site chose: a backslash in a text means what `text` has written.
_SESSION = "SET SESSION sql_mode = REPLACE(@@sql_mode, 'NO_BACKSLASH_ESCAPES', '');"


def lines(module: AnsibleModule, statement: str) -> list[str]:
    """What it answers to statements, a line per row, tabs between columns; a refused one ends the module."""
    command = ["mariadb", "--batch", "--raw", "--skip-column-names", "--binary-mode"]
    code, out, err = module.run_command(command, data=f"{_SESSION}\n{statement};\n")
    if code != 0:
        module.fail_json(msg=f"MariaDB: {(err or out).strip()}")
    return list(out.splitlines())


def account(name: str, host: str) -> str:
    """An account, as in statements."""
    return f"{text(name)}@{text(host)}"


def text(value: str) -> str:
    """A string of SQL's."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
