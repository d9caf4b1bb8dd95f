"""A database on two hosts and an arbitrator is restored over a living cluster."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.jobs import submit
from tests.cluster.lab_cluster import DEPLOY, Cluster, run, wait_until
from tests.cluster.members_lab import MEMBERS, ROWS, done, is_whole, members_lab, rows
from tests.cluster.test_backup import Key, make_key, restore

pytestmark = [pytest.mark.one_release, pytest.mark.more]


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Key:
    return make_key(tmp_path_factory.mktemp("key") / "backup.key")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, key: Key) -> Iterator[Cluster]:
    with members_lab("members-two", tmp_path_factory, MEMBERS) as made:
        backed_up(made, key)
        made.deploy()
        yield made


def backed_up(made: Cluster, key: Key) -> None:
    """Backups of it are for this key."""
    with (made.directory / "group_vars" / "all.yml").open("a") as file:
        file.write(f"\nbackup_recipients: [{key.recipient}]\n")


def test_a_restore_loads_one_member_and_the_other_gets_it(kept: Cluster, key: Key) -> None:
    first = done(kept)
    wait_until("both have the row", lambda: all(first in rows(kept, host) for host in ROWS), 120)
    of_backup = {first, _state_is_saved(kept)}
    wait_until("slurmdbd knows both", lambda: of_backup <= rows(kept, "ctl2"), 120)
    archive = Path(json.loads(run(*DEPLOY, "backup", str(kept.inventory), "--json").stdout)["file"])
    second = done(kept)
    wait_until("both have this one, too", lambda: all(second in rows(kept, host) for host in ROWS), 120)
    before = kept.starts(*ROWS)
    tried = restore(kept, archive, key, "--check").stderr
    assert "the database can be loaded; it has 2 jobs" in tried
    assert kept.starts(*ROWS) == before
    said = restore(kept, archive, key, "--only", "database", "--yes", "--no-validate").stderr
    assert "has the 2 jobs of the backup, and so has login1" in said
    for host in ROWS:
        assert rows(kept, host) == of_backup
    is_whole(kept)
    restore(kept, archive, key, "--yes", "--no-validate")
    is_whole(kept)
    third = done(kept)
    assert int(third) > int(second)
    wait_until(
        "both have its row", lambda: all(rows(kept, host) == {*of_backup, third} for host in ROWS), 120
    )
    assert _asides(kept, "ctl2") == _asides(kept, "login1")
    assert len(_asides(kept, "ctl2")) == 2


def _asides(cluster: Cluster, host: str) -> list[str]:
    listed = cluster.on(host, "mariadb", "-Ne", "SHOW DATABASES LIKE '%before\\_restore%'")
    return sorted(listed.split())


def _state_is_saved(cluster: Cluster) -> str:
    """A job that is held, with which the queue was saved."""
    cluster.on("ctl1", "touch", "/run/they-are-there")
    held = submit(cluster, "--hold", "true")
    written = ("find", "/var/spool/slurmctld/job_state", "-newer", "/run/they-are-there")
    wait_until("the queue is saved", lambda: bool(cluster.on("ctl1", *written, expect=None)), 60)
    return held
