"""Backups of upgrades of Slurm: which of them go when there is a newer one."""

import gzip
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest

from tests.unit.roles.loading import load_module

module = load_module("playbooks/library/slurm_backup.py")
NOW = time.mktime((2026, 11, 25, 12, 0, 0, 0, 0, -1))
OLD = ["slurm-22.05-20230301-090000", "slurm-23.02-20240301-090000", "slurm-23.11-20240901-090000"]
NEW = ["slurm-24.11-20261124-100000", "slurm-unknown-20261125-110000", "slurm-25.05-20261125-115000"]


@pytest.mark.parametrize(
    ("names", "gone"),
    [
        ([], []),
        (OLD, []),
        ([*OLD, NEW[0]], OLD[:1]),
        # Those of an upgrade that was typed again and again are all of it.
        ([*OLD, *NEW], OLD),
        ([*NEW, "slurm-25.05-20261125-115900", "slurm-25.05-20261125-115930"], []),
        # What nobody made here stays.
        ([*OLD, NEW[0], "slurm", "slurm-25.05", "slurm-25.05-20230101-090000.old", "database"], OLD[:1]),
        ([*OLD, NEW[0], "slurm-25.05-20231301-990000"], OLD[:1]),
    ],
)
def test_the_newest_three_stay_and_all_of_a_month(names: list[str], gone: list[str]) -> None:
    assert module.outdated(names, NOW) == gone


def test_only_directories_that_an_upgrade_made_are_removed(tmp_path: Path) -> None:
    place = tmp_path / NEW[0]
    for name in (*OLD, NEW[0]):
        (tmp_path / name).mkdir()
        (tmp_path / name / "files.tar.gz").write_text("x")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "slurm-21.08-20220301-090000").symlink_to(tmp_path / "elsewhere")
    assert module.prune(place, NOW) == OLD[:1]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [*OLD[1:], NEW[0], "elsewhere", "slurm-21.08-20220301-090000"]
    )
    # A directory of another name is not one of those.
    assert module.prune(tmp_path / "elsewhere", NOW) == []


def test_the_backup_that_was_just_made_stays_whatever_the_clocks_say(tmp_path: Path) -> None:
    for name in (*OLD, NEW[0]):
        (tmp_path / name).mkdir()
    assert module.prune(tmp_path / OLD[0], NOW) == []


class _Failed(Exception):  # noqa: N818 - the module ends there
    pass


def _fail(msg: str) -> NoReturn:
    raise _Failed(msg)


HOST = SimpleNamespace(fail_json=_fail)


def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **texts: str) -> None:
    """Other programs of these names, in the shell's language."""
    place = tmp_path / "bin"
    place.mkdir()
    for name, text in texts.items():
        program = place / name.replace("_", "-")
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")


def test_a_dump_is_packed_as_it_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs(tmp_path, monkeypatch, mariadb_dump='echo "$@"')
    with module.written(tmp_path / "acct.sql.gz") as fresh:
        module.dump(HOST, "acct", fresh)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["acct.sql.new", "bin"]
    said = gzip.decompress((tmp_path / "acct.sql.gz").read_bytes()).decode()
    assert said.split() == ["--single-transaction", "--routines", "--max-allowed-packet=1G", "acct"]


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ({"mariadb_dump": "echo half; echo no such table >&2; exit 2"}, "mariadb-dump: no such table"),
        # It ends while the dump goes on.
        ({"mariadb_dump": "yes", "gzip": "echo No space left on device >&2; exit 1"}, "No space left"),
    ],
)
def test_what_is_no_whole_dump_takes_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: dict[str, str], why: str
) -> None:
    programs(tmp_path, monkeypatch, **texts)
    with (
        pytest.raises(_Failed, match=f"no backup, so nothing was changed: .*{why}"),
        module.written(tmp_path / "acct.sql.gz") as fresh,
    ):
        module.dump(HOST, "acct", fresh)
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]
