"""Backups of upgrades of Slurm: which of them go when there is a newer one."""

import time
from pathlib import Path

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
