"""What was declared is remembered where the rows are, whichever host is asked."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.roles.loading import load_module

memory = load_module("roles/slurm_accounts/module_utils/slurm_accounting_memory.py")
given = memory.given.__globals__
THEN = {"users": {"al\\ice": "it's"}}
NOW: dict[str, dict[str, str]] = {"users": {}}


class Server:
    """A MariaDB that understands these statements; members have the same rows."""

    def __init__(self) -> None:
        self.rows: dict[str, str] | None = None

    def lines(self, _: object, statement: str) -> list[str]:
        if "information_schema" in statement:
            assert "table_schema = 'acct'" in statement
            return [] if self.rows is None else ["1"]
        for each in statement.split(";\n"):
            if each.startswith("CREATE TABLE `acct`."):
                assert self.rows is None
                self.rows = {}
            elif found := re.match(r"REPLACE INTO `acct`\.`\w+` VALUES \('(\w+)', '(.*)'\)$", each):
                assert self.rows is not None
                self.rows[found[1]] = found[2].replace("''", "'").replace("\\\\", "\\")
            elif found := re.match(r"SELECT content FROM `acct`\.`\w+` WHERE name = '(\w+)'$", each):
                assert self.rows is not None
                return [self.rows[found[1]]] if found[1] in self.rows else []
            else:
                pytest.fail(each)
        return []


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    monkeypatch.setattr(memory, "lines", made.lines)
    return made


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a host keeps its own memory."""
    monkeypatch.setitem(given, "DIRECTORY", tmp_path)
    monkeypatch.setattr(memory, "DIRECTORY", tmp_path)
    return tmp_path


def asked(database: str = "acct", **fake: object) -> Any:  # noqa: ANN401 - of a module that is loaded
    return memory.Memory(SimpleNamespace(**{"check_mode": False, **fake}), database)


def test_another_host_with_the_database_knows_what_was_declared(server: Server, host: Path) -> None:
    asked().keep(THEN)
    assert not [*host.iterdir()]
    other = asked()
    assert other.known == THEN
    other.keep(NOW)
    assert asked().known == NOW
    assert server.rows is not None


def test_what_a_host_remembered_itself_goes_into_the_database(server: Server, host: Path) -> None:
    file = host / "slurm_accounts.json"
    file.write_text(json.dumps(THEN))
    kept = asked()
    assert kept.known == THEN
    # Also where nothing of it changes.
    kept.keep(THEN)
    assert server.rows is not None
    assert not file.exists()
    assert asked().known == THEN


def test_what_a_database_says_that_was_put_back_counts_more_than_a_file(server: Server, host: Path) -> None:
    server.rows = {"slurm_accounts": json.dumps(THEN)}
    (host / "slurm_accounts.json").write_text(json.dumps(NOW))
    assert asked().known == THEN


@pytest.mark.parametrize("content", ["", "{", "[]"])
def test_what_cannot_be_read_is_nothing(server: Server, content: str) -> None:
    server.rows = {"slurm_accounts": content} if content else {}
    assert asked().known == {}


def test_a_host_without_the_database_remembers_by_itself(host: Path, server: Server) -> None:
    kept = asked("")
    assert kept.known == {}
    kept.keep(THEN)
    assert asked("").known == json.loads((host / "slurm_accounts.json").read_text()) == THEN
    assert server.rows is None


@pytest.mark.parametrize("program", [None, "/usr/bin/mariadb"])
def test_a_preview_of_a_first_deployment_asks_no_server(server: Server, program: str | None) -> None:
    server.rows = {"slurm_accounts": json.dumps(THEN)}
    for code, known in ((1, {}), (0, THEN if program else {})):
        host = {"get_bin_path": lambda _: program, "run_command": lambda _, code=code: (code, "", "")}
        assert asked("acct", check_mode=True, **host).known == known
