"""A lab whose accounting database is on two hosts and an arbitrator, and what tests ask of it."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cluster.jobs import submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, run, wait_until

ALONE, MEMBERS = "[slurm-database]\nctl2\n", "[slurm-database]\nctl2\nlogin1\nctl1\n"
ROWS = ("ctl2", "login1")
"""The hosts with rows; ctl1 has a vote."""
_SYNCED = ["wsrep_cluster_size\t3", "wsrep_local_state_comment\tSynced"]
_STATUS = "SHOW STATUS WHERE Variable_name IN ('wsrep_cluster_size', 'wsrep_local_state_comment')"


@contextmanager
def members_lab(name: str, places: pytest.TempPathFactory, database: str, *more: str) -> Iterator[Cluster]:
    """One controller, a node, and two machines for the database; nothing is deployed yet."""
    options = ("--controllers", "2", "--nodes", "1", "--gpus", "0", *more)
    with booted(name, places, *options, release="trixie") as made:
        prepare(made, database)
        yield made


def prepare(made: Cluster, database: str) -> None:
    """Makes of the second controller of a new lab a host of the database."""
    edit(
        made,
        "inventory.ini",
        ("[slurm-master]\nctl1\nctl2\n", "[slurm-master]\nctl1\n"),
        ("[slurm-login]\nlogin1\n", "[slurm-login]\nlogin1\nctl1\n"),
        ("[slurm-database]\nlogin1\n", database),
        ("\n\n[all:vars]", "\nslurm-database\n\n[all:vars]"),
    )
    edit(made, "group_vars/slurm-master.yml", ("slurmctld_state_save_location: /srv/slurm/state\n", ""))


def put_apart(made: Cluster) -> None:
    """Of three controllers of a new lab two stay; login1 and the third have the database, ctl1 a vote."""
    edit(
        made,
        "inventory.ini",
        ("[slurm-master]\nctl1\nctl2\nctl3\n", "[slurm-master]\nctl1\nctl2\n"),
        ("[slurm-database]\nlogin1\n", "[slurm-database]\nlogin1\nctl3\nctl1\n"),
        ("\n\n[all:vars]", "\nslurm-database\n\n[all:vars]"),
    )


def edit(cluster: Cluster, file: str, *changes: tuple[str, str]) -> None:
    """Replaces text of the site that is there once."""
    path = cluster.directory / file
    text = path.read_text()
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after, 1)
    path.write_text(text)


def done(cluster: Cluster) -> str:
    """A job that is accounted as completed."""
    ready = ("sinfo", "--noheader", "--format", "%t")
    wait_until("a node is idle", lambda: "idle" in cluster.on("ctl1", *ready, expect=None), 240)
    job = submit(cluster, "", "true")
    wait_for_job(cluster, job, "COMPLETED", seconds=240)
    return job


def rows(cluster: Cluster, host: str) -> set[str]:
    """The jobs that the database of a host has; none while it answers nobody, as when another one is gone."""
    tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'slurm_acct_db'"
    named = ("mariadb", "-Ne", f"{tables} AND table_name LIKE '%\\_job_table'")
    for table in cluster.on(host, *named, expect=None).split():
        ids = f"SELECT id_job FROM slurm_acct_db.{table}"  # noqa: S608
        return set(cluster.on(host, "mariadb", "-Ne", ids, expect=None).split())
    return set()


def is_whole(cluster: Cluster) -> None:
    """Waits until all three have a vote, and both all rows."""

    wait_until("both are members of three", lambda: all(is_synced(cluster, host) for host in ROWS), 300)


def is_synced(cluster: Cluster, host: str) -> bool:
    """Whether a host is one of three members, and has what the others have."""
    said = cluster.on(host, "mariadb", "-Ne", _STATUS, expect=None)
    return sorted(said.splitlines()) == _SYNCED


def off(cluster: Cluster, host: str) -> None:
    """Its power is cut: nothing ends in order."""
    cluster.power_off(host)


def on(cluster: Cluster, host: str) -> None:
    """It has power again."""
    run(*DEPLOY, "lab", "start", host, "--name", cluster.name)
