"""Two runs from two places: when one may write, and what it may go by."""

from pathlib import Path

import pytest

from deploy.engine.options import Options
from tests.unit.engine.machines import Machines, machines
from tests.unit.engine.test_first_run import never
from tests.unit.site.sites import write_site

__all__ = ["machines"]


@pytest.fixture
def settled(machines: Machines, tmp_path: Path) -> Path:
    """A site whose hosts are as they were recorded."""
    inventory = write_site(tmp_path)
    machines.settle(inventory)
    return inventory


def test_where_nothing_changes_the_list_of_hosts_is_written_under_the_lock(
    machines: Machines, settled: Path
) -> None:
    machines.run(settled, never)
    assert machines.ran == []
    assert machines.wrote == [("know", True)]


def test_what_only_looks_holds_no_lock_and_writes_nothing(machines: Machines, settled: Path) -> None:
    machines.run(settled, never, Options(check=True))
    machines.plan(settled)
    assert not machines.wrote
    assert not machines.held


@pytest.mark.parametrize(("idle", "looks"), [(0.0, 2), (3600.0, 1)])
def test_what_hosts_said_while_another_run_was_at_work_is_asked_again(
    machines: Machines, settled: Path, idle: float, looks: int
) -> None:
    """It ended between the first question and the lock: what it did is no part of the answer."""
    machines.idle = idle
    machines.run(settled, never)
    assert machines.looks == looks
