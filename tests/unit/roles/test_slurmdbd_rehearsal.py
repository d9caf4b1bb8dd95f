import os
import stat
from pathlib import Path
from typing import NoReturn

import pytest

from tests.unit.roles.loading import load_module

rehearsal = load_module("roles/slurmdbd/library/slurmdbd_rehearsal.py")
_DUMP = "INSERT INTO acct VALUES (1);"


def test_jobs_and_associations_are_counted_and_usage_is_summed_up_to_what_there_was() -> None:
    tables = ["c_job_table", "c_assoc_table", "c_assoc_usage_hour_table", "c_step_table", "user_table"]
    asked = rehearsal.counting(tables, {"c_assoc_usage_hour_table": 3600})
    assert asked == {
        "c_job_table": "select count(*) from `c_job_table`",
        "c_assoc_table": "select count(*) from `c_assoc_table`",
        "c_assoc_usage_hour_table": (
            "select coalesce(sum(alloc_secs), 0) from `c_assoc_usage_hour_table` where time_start <= 3600"
        ),
    }


class _Failed(Exception):  # noqa: N818 - the module ends there
    pass


class FakeModule:
    """An AnsibleModule on a host of which every command succeeds."""

    def __init__(self, place: Path) -> None:
        self.params = {"root": str(place / "root"), "database": "acct", "directory": str(place)}
        self.commands: list[list[str]] = []

    def run_command(self, command: list[str], data: str | None = None) -> tuple[int, str, str]:
        assert data is None, "all of it would be in memory, more than once"
        self.commands.append(command)
        if command[0] == "mariadb-dump":
            name = next(word.partition("=")[2] for word in command if word.startswith("--result-file="))
            Path(name).write_text(_DUMP)
        return 0, "", ""

    def fail_json(self, msg: str) -> NoReturn:
        raise _Failed(msg)


def _client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    program = tmp_path / "bin/mariadb"
    program.parent.mkdir()
    program.write_text(text)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PLACE", str(tmp_path))


def test_a_dump_is_loaded_without_being_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _client(tmp_path, monkeypatch, '#!/bin/sh\ncat > "$PLACE/got"\necho "$@" > "$PLACE/asked"\n')
    host = FakeModule(tmp_path / "rehearsal")
    (tmp_path / "rehearsal").mkdir()
    rehearsal.Rehearsal(host).fill()
    assert (tmp_path / "got").read_text() == _DUMP
    assert (tmp_path / "asked").read_text().endswith("acct\n")
    # Statements are as long as the site's server takes them, whatever that is.
    longest = "--max-allowed-packet=1G"
    assert longest in (tmp_path / "asked").read_text()
    assert all(longest in command for command in host.commands if {"mariadb-dump", "mariadbd"} & {*command})
    assert not (tmp_path / "rehearsal/dump.sql").exists()


def test_a_dump_that_is_refused_ends_the_rehearsal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _client(tmp_path, monkeypatch, "#!/bin/sh\necho ERROR 1118 at line 7: Row size too large >&2\nexit 1\n")
    (tmp_path / "rehearsal").mkdir()
    with pytest.raises(_Failed, match="mariadb: ERROR 1118 at line 7"):
        rehearsal.Rehearsal(FakeModule(tmp_path / "rehearsal")).fill()
