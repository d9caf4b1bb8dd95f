"""Accounts are asked for on a host that has slurmdbd alone, too."""

from pathlib import Path

import pytest

from tests.unit.roles.slurm_accounting.modules import look

SLURMDBD = """AuthType=auth/munge
DbdHost=db1
DbdBackupHost=db2
DbdPort=6819
StoragePass=secret
"""
SHOWS = """#!/bin/sh
echo "$*"
cat ${SLURM_CONF:-/dev/null}
"""


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    program = tmp_path / "sacctmgr"
    program.write_text(SHOWS)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.setattr(look, "CONFIGURATIONS", (tmp_path / "slurm.conf",))
    monkeypatch.setattr(look, "SLURMDBD", tmp_path / "slurmdbd.conf")
    return tmp_path


def test_without_a_configuration_of_slurm_that_of_slurmdbd_says_who_is_asked(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "slurmdbd.conf").write_text(SLURMDBD)
    look.main("qos", "format=name")
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "--noheader --parsable2 show qos format=name"
    assert {
        "AuthType=auth/munge",
        "AccountingStorageHost=db1",
        "AccountingStorageBackupHost=db2",
        "AccountingStoragePort=6819",
    } <= {*said}
    assert "secret" not in "".join(said)


def test_with_one_it_is_left_to_slurm(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "slurmdbd.conf").write_text(SLURMDBD)
    (place / "slurm.conf").touch()
    look.main("qos", "format=name")
    assert capsys.readouterr().out.splitlines() == ["--noheader --parsable2 show qos format=name"]
