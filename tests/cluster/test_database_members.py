"""A database on one host becomes one on two with an arbitrator; each is killed, and all lose their power."""

import json
from collections.abc import Iterator

import pytest

from deploy.lab.state import container_name
from tests.cluster.jobs import submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, run, wait_until

pytestmark = [pytest.mark.one_release, pytest.mark.more]

ALONE, MEMBERS = "[slurm-database]\nctl2\n", "[slurm-database]\nctl2\nlogin1\nctl1\n"
_SYNCED = ["wsrep_cluster_size\t3", "wsrep_local_state_comment\tSynced"]
_STATUS = "SHOW STATUS WHERE Variable_name IN ('wsrep_cluster_size', 'wsrep_local_state_comment')"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One controller, a node, and two machines for the database, of which one has it."""
    options = ("--controllers", "2", "--nodes", "1", "--gpus", "0")
    with booted("members", tmp_path_factory, *options, release="trixie") as made:
        _edit(
            made,
            "inventory.ini",
            ("[slurm-master]\nctl1\nctl2\n", "[slurm-master]\nctl1\n"),
            ("[slurm-login]\nlogin1\n", "[slurm-login]\nlogin1\nctl1\n"),
            ("[slurm-database]\nlogin1\n", ALONE),
            ("slurm-metric\n\n[all:vars]", "slurm-metric\nslurm-database\n\n[all:vars]"),
        )
        _edit(made, "group_vars/slurm-master.yml", ("slurmctld_state_save_location: /srv/slurm/state\n", ""))
        made.deploy()
        yield made


@pytest.fixture(scope="module")
def jobs(kept: Cluster) -> list[str]:
    """All jobs of this file; each test adds some, and the last one looks for all of them."""
    return [_done(kept)]


def test_the_database_of_one_host_gets_members(kept: Cluster, jobs: list[str]) -> None:
    _edit(kept, "inventory.ini", (ALONE, MEMBERS))
    kept.deploy()
    _is_whole(kept)
    jobs.append(_done(kept))
    for host in ("ctl2", "login1"):
        assert _rows(kept, host) == set(jobs)
    shown = kept.on("ctl1", "scontrol", "show", "config")
    assert "AccountingStorageHost   = ctl2" in shown
    assert "AccountingStorageBackupHost = login1" in shown
    # Nobody begins again, and nothing is left to do.
    uuid = kept.on("ctl2", "mariadb", "-Ne", "SHOW STATUS LIKE 'wsrep_cluster_state_uuid'")
    assert "(0 changes" in kept.deploy().stdout
    assert kept.on("login1", "mariadb", "-Ne", "SHOW STATUS LIKE 'wsrep_cluster_state_uuid'") == uuid


def test_a_killed_server_is_a_member_again(kept: Cluster, jobs: list[str]) -> None:
    kept.on("ctl2", "systemctl", "kill", "--signal=KILL", "mariadb")
    jobs.append(submit(kept, "", "true"))
    _is_whole(kept)
    wait_for_job(kept, jobs[-1], "COMPLETED", seconds=180)


def test_accounting_goes_on_while_the_first_host_is_off(kept: Cluster, jobs: list[str]) -> None:
    _off(kept, "ctl2")
    job = submit(kept, "", "true")
    jobs.append(job)
    wait_until("the other host has its row", lambda: job in _rows(kept, "login1"), 240)
    wait_for_job(kept, job, "COMPLETED", seconds=240)
    said = json.loads(run(*DEPLOY, "status", str(kept.inventory), "--json", expect=None).stdout)
    assert said["database"]["ctl2"] is None
    assert said["database"]["login1"]["votes"] == 2
    assert "members-missing" in json.dumps(said["hosts"]["login1"])
    _on(kept, "ctl2")
    _is_whole(kept)
    wait_until("the row is there, too", lambda: job in _rows(kept, "ctl2"), 120)


def test_all_lose_their_power_and_begin_by_themselves(kept: Cluster, jobs: list[str]) -> None:
    jobs.append(_done(kept))
    for host in ("ctl1", "ctl2", "login1"):
        _off(kept, host)
    for host in ("login1", "ctl1", "ctl2"):
        _on(kept, host)
    _is_whole(kept)
    jobs.append(_done(kept))


def test_after_an_end_in_order_a_run_begins_with_the_last(kept: Cluster, jobs: list[str]) -> None:
    for host in ("ctl2", "login1"):
        kept.on(host, "systemctl", "stop", "mariadb")
    kept.on("ctl1", "systemctl", "stop", "garb")
    kept.deploy()
    _is_whole(kept)
    jobs.append(_done(kept))


def test_no_row_is_missing(kept: Cluster, jobs: list[str]) -> None:
    for host in ("ctl2", "login1"):
        assert set(jobs) <= _rows(kept, host)
    shown = ("sacct", "-X", "-n", "-P", "--format=jobid,state", "-j", ",".join(jobs))
    assert sorted(kept.on("ctl1", *shown).splitlines()) == sorted(f"{job}|COMPLETED" for job in jobs)


def _edit(cluster: Cluster, file: str, *changes: tuple[str, str]) -> None:
    path = cluster.directory / file
    text = path.read_text()
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after, 1)
    path.write_text(text)


def _done(cluster: Cluster) -> str:
    """A job that is accounted as completed."""
    ready = ("sinfo", "--noheader", "--format", "%t")
    wait_until("a node is idle", lambda: "idle" in cluster.on("ctl1", *ready, expect=None), 240)
    job = submit(cluster, "", "true")
    wait_for_job(cluster, job, "COMPLETED", seconds=240)
    return job


def _rows(cluster: Cluster, host: str) -> set[str]:
    """The jobs that the database of a host has."""
    tables = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE '%\\_job_table'"
    (table,) = cluster.on(host, "mariadb", "-Ne", tables).split()
    return set(cluster.on(host, "mariadb", "-Ne", f"SELECT id_job FROM slurm_acct_db.{table}").split())  # noqa: S608


def _is_whole(cluster: Cluster) -> None:
    def synced(host: str) -> bool:
        said = cluster.on(host, "mariadb", "-Ne", _STATUS, expect=None)
        return sorted(said.splitlines()) == _SYNCED

    wait_until("both are members of three", lambda: synced("ctl2") and synced("login1"), 300)


def _off(cluster: Cluster, host: str) -> None:
    """Its power is cut: nothing ends in order."""
    run("podman", "kill", container_name(cluster.name, host))


def _on(cluster: Cluster, host: str) -> None:
    run(*DEPLOY, "lab", "start", host, "--name", cluster.name)
