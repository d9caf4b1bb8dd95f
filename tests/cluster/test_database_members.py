"""A database on one host becomes one on two with an arbitrator; each is killed, and all lose their power."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cluster.jobs import submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, run, wait_until
from tests.cluster.members_lab import (
    ALONE,
    MEMBERS,
    ROWS,
    done,
    edit,
    is_synced,
    is_whole,
    members_lab,
    off,
    on,
    rows,
)

_OTHER = "[slurm-database]\nlogin1\n"
_LOG = "/var/log/slurm/slurmdbd.log"
_MANY = "until test -e enough; do sbatch --parsable --output /dev/null --wrap true; done; rm enough"
_DROP_IN = "/etc/systemd/system/mariadb.service.d/override.conf"
pytestmark = [pytest.mark.one_release, pytest.mark.more, pytest.mark.long]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One controller, a node, and two machines for the database, of which one has it."""
    with members_lab("members", tmp_path_factory, ALONE) as made:
        made.deploy()
        yield made


@pytest.fixture(scope="module")
def jobs(kept: Cluster) -> list[str]:
    """All jobs of this file; each test adds some, and the last one looks for all of them."""
    return [done(kept)]


def test_the_database_of_one_host_gets_members(kept: Cluster, jobs: list[str]) -> None:
    edit(kept, "inventory.ini", (ALONE, MEMBERS))
    kept.deploy()
    is_whole(kept)
    jobs.append(done(kept))
    for host in ROWS:
        _has_rows(kept, host, jobs)
    # MariaDB changed none of its own tables: that and what the other one sends would wait for each other.
    known = "/var/lib/mysql/mariadb_upgrade_info"
    wait_until("their release is known", lambda: bool(kept.on("login1", "cat", known, expect=None)), 60)
    assert kept.on("login1", "stat", "--format", "%U", known) == "mysql\n"
    shown = kept.on("ctl1", "scontrol", "show", "config")
    assert "AccountingStorageHost   = ctl2" in shown
    assert "AccountingStorageBackupHost = login1" in shown
    # Nobody begins again, and nothing is left to do.
    uuid = kept.on("ctl2", "mariadb", "-Ne", "SHOW STATUS LIKE 'wsrep_cluster_state_uuid'")
    again = kept.deploy().stdout
    assert "(0 changes" in again
    assert "drift" not in again
    assert kept.on("login1", "mariadb", "-Ne", "SHOW STATUS LIKE 'wsrep_cluster_state_uuid'") == uuid


def test_a_killed_server_is_a_member_again(kept: Cluster, jobs: list[str]) -> None:
    kept.on("ctl2", "systemctl", "kill", "--signal=KILL", "mariadb")
    jobs.append(submit(kept, "", "true"))
    is_whole(kept)
    wait_for_job(kept, jobs[-1], "COMPLETED", seconds=180)
    # It runs as it did, though with another position in its command line.
    assert "(0 changes" in kept.deploy().stdout


def test_a_copy_into_which_nothing_comes_is_begun_anew(kept: Cluster) -> None:
    with (kept.directory / "group_vars" / "all.yml").open("a", encoding="utf-8") as file:
        file.write("\nmariadb_cluster_copy_timeout: 30\n")
    kept.deploy()
    forget = "systemctl stop mariadb; rm -f /var/lib/mysql/grastate.dat /var/lib/mysql/gvwstate.dat"
    kept.on("login1", "sh", "-c", f"{forget}; systemctl start --no-block mariadb")
    sends = ("pgrep", "--full", "mariadb-backup .*--backup")
    wait_until("a copy is on its way", lambda: bool(kept.on("ctl2", *sends, expect=None)), 120)
    # MariaDB would wait for what this one receives, and has systemd wait for it.
    kept.on("login1", "pkill", "--signal", "STOP", "--exact", "socat")
    is_whole(kept)
    said = kept.on("login1", "journalctl", "--unit", "deploy-mariadb-copy", "--output", "cat")
    assert "no byte of the copy of the accounting database came for 30 s" in said


def test_both_are_restarted_one_after_the_other_for_what_others_added_to_their_units(
    kept: Cluster, jobs: list[str]
) -> None:
    began = ("systemctl", "show", "mariadb", "--property=ExecMainStartTimestampMonotonic")
    before = [kept.on(host, *began) for host in ROWS]
    for host in ROWS:
        kept.on(host, "sh", "-c", f"printf '[Service]\\nLimitNOFILE=40000\\n' > {_DROP_IN}")
        kept.on(host, "systemctl", "daemon-reload")
    kept.deploy()
    is_whole(kept)
    for host, start in zip(ROWS, before, strict=True):
        kept.on(host, "test", "!", "-e", _DROP_IN)
        assert kept.on(host, *began) != start
    jobs.append(done(kept))


def test_accounting_goes_on_while_the_first_host_is_off(kept: Cluster, jobs: list[str]) -> None:
    # slurmctld waits for an answer when the host goes.
    kept.on("ctl2", "pkill", "-STOP", "-x", "slurmdbd")
    jobs.append(submit(kept, "", "true"))
    wait_until("it has ended", lambda: not kept.on("ctl1", "squeue", "--noheader").strip(), 60)
    off(kept, "ctl2")
    job = submit(kept, "", "true")
    jobs.append(job)
    wait_until("the other host has its row", lambda: job in rows(kept, "login1"), 240)
    wait_for_job(kept, job, "COMPLETED", seconds=240)
    said = json.loads(run(*DEPLOY, "status", str(kept.inventory), "--json", expect=None).stdout)
    assert said["database"]["ctl2"] is None
    assert said["database"]["login1"]["votes"] == 2
    assert "members-missing" in json.dumps(said["hosts"]["login1"])
    jobs.append(_of_a_new_account(kept, "newcomers"))
    on(kept, "ctl2")
    is_whole(kept)
    wait_until("the row is there, too", lambda: job in rows(kept, "ctl2"), 120)
    # The one that stood in stands by again, and Slurm's own end of it would be waited for in vain.
    wait_until("it stands by", lambda: not _listens(kept, "login1"), 120)
    kept.on("login1", "systemctl", "restart", "slurmdbd")
    assert "timed out" not in kept.on("login1", "journalctl", "--boot", "--unit", "slurmdbd")


def test_a_first_slurmdbd_that_starts_costs_the_second_one_no_row(kept: Cluster, jobs: list[str]) -> None:
    before = _failed_commits(kept)
    kept.on("ctl1", "scontrol", "update", "PartitionName=batch", "OverSubscribe=FORCE:100")
    with ThreadPoolExecutor(1) as beside:
        many = beside.submit(kept.as_user, _MANY, seconds=900)
        try:
            for _ in range(4):
                _leave_and_come_back(kept)
        finally:
            kept.as_user("touch enough")
        jobs.extend(many.result().split())
    wait_until("all have ended", lambda: not kept.on("ctl1", "squeue", "--noheader").strip(), 600)
    assert _failed_commits(kept) == before
    kept.deploy()


def _leave_and_come_back(cluster: Cluster) -> None:
    """The first slurmdbd, while the second one writes."""
    cluster.on("ctl2", "systemctl", "stop", "slurmdbd")
    wait_until("the second one serves", lambda: _listens(cluster, "login1"), 120)
    there = rows(cluster, "login1")
    wait_until("it writes", lambda: rows(cluster, "login1") > there, 120)
    cluster.on("ctl2", "systemctl", "start", "slurmdbd")
    wait_until("the first one serves", lambda: _listens(cluster, "ctl2"), 120)
    wait_until("the second one runs", lambda: _runs(cluster, "login1"), 120)
    assert not _listens(cluster, "login1")


def test_one_that_does_not_begin_keeps_the_second_one_from_serving_once(
    kept: Cluster, jobs: list[str]
) -> None:
    wrong = "sed -i s/^DbdHost=.*/DbdHost=nobody/ /etc/slurm/slurmdbd.conf"
    kept.on("ctl2", "sh", "-c", f"{wrong}; systemctl restart --no-block slurmdbd")
    said = ("journalctl", "--unit", "slurmdbd", "--output", "cat")
    refuses = "so this one does not end for it for 10 minutes"
    wait_until("the second one gives it up", lambda: refuses in kept.on("login1", *said), 180)
    jobs.append(done(kept))
    assert _listens(kept, "login1")
    kept.on("login1", "rm", "/run/deploy/slurmdbd-handover-in-vain")
    kept.deploy()
    wait_until("the first one serves", lambda: _listens(kept, "ctl2"), 120)
    jobs.append(done(kept))


def test_all_lose_their_power_and_begin_by_themselves(kept: Cluster, jobs: list[str]) -> None:
    jobs.append(done(kept))
    for host in ("ctl1", "ctl2", "login1"):
        off(kept, host)
    for host in ("login1", "ctl1", "ctl2"):
        on(kept, host)
    is_whole(kept)
    jobs.append(done(kept))


def test_after_an_end_in_order_a_run_begins_with_the_last(kept: Cluster, jobs: list[str]) -> None:
    for host in ROWS:
        kept.on(host, "systemctl", "stop", "mariadb")
    kept.on("ctl1", "systemctl", "stop", "garb")
    kept.deploy()
    is_whole(kept)
    jobs.append(done(kept))


def test_beside_an_arbitrator_that_is_left_none_begins_without_its_end(
    kept: Cluster, jobs: list[str]
) -> None:
    for host in ROWS:
        kept.on(host, "systemctl", "stop", "mariadb")
    assert "members-left-out" in kept.deploy_refused("--tags", "mariadb", expect=2)
    kept.deploy()
    is_whole(kept)
    jobs.append(done(kept))


def test_the_only_one_with_rows_is_restarted_when_the_other_is_back(kept: Cluster) -> None:
    started = ("systemctl", "show", "mariadb", "--property=InvocationID")
    before = kept.on("ctl2", *started)
    off(kept, "login1")
    kept.on("ctl2", "touch", "/etc/mysql/mariadb.conf.d/99-of-others.cnf")
    kept.deploy(expect=4)
    assert kept.on("ctl2", *started) == before
    on(kept, "login1")
    is_whole(kept)
    kept.deploy()
    assert kept.on("ctl2", *started) != before
    is_whole(kept)


def test_one_of_them_does_not_go_on_alone_beside_the_others(kept: Cluster) -> None:
    edit(kept, "inventory.ini", (_line(kept), ""), (MEMBERS, _OTHER))
    assert "2 others are members still" in kept.plan(expect=1)
    assert "2 others are members still" in kept.deploy(expect=1).stdout
    is_whole(kept)


def test_the_second_one_goes_on_alone_with_all_rows(kept: Cluster, jobs: list[str]) -> None:
    assert "running mariadb" in run(*DEPLOY, "node", "remove", str(kept.inventory), "ctl2").stdout
    assert kept.on("ctl2", "systemctl", "is-active", "mariadb", expect=None) == "inactive\n"
    kept.on("ctl1", "systemctl", "disable", "--now", "garb")
    jobs.append(submit(kept, "", "true"))
    kept.deploy()
    jobs.append(done(kept))
    wait_until("it has all rows", lambda: rows(kept, "login1") == set(jobs), 240)
    shown = kept.on("ctl1", "scontrol", "show", "config")
    assert "AccountingStorageHost   = login1" in shown
    assert "AccountingStorageBackupHost = (null)" in shown
    assert (
        kept.on("login1", "systemctl", "is-active", "deploy-slurmdbd-handover", expect=None) == "inactive\n"
    )
    assert kept.on("login1", "mariadb", "-Ne", "SELECT IF(@@wsrep_on, 'is one', 'is none')") == "is none\n"
    assert "(0 changes" in kept.deploy().stdout


def test_what_was_a_member_before_takes_no_rows_away(kept: Cluster, jobs: list[str]) -> None:
    login = "login1 ansible"
    edit(kept, "inventory.ini", (login, _line(kept) + login), (_OTHER, f"{_OTHER}ctl2\nctl1\n"))
    assert "have the accounting database, each its own" in kept.deploy_refused(expect=1)
    assert rows(kept, "login1") == set(jobs)
    kept.on("ctl2", "rm", "-rf", "/var/lib/mysql/grastate.dat", "/var/lib/mysql/slurm_acct_db")
    kept.deploy()
    is_whole(kept)
    jobs.append(done(kept))


def _line(cluster: Cluster) -> str:
    """What the inventory has of the host that leaves."""
    return f"ctl2 ansible_host={cluster.on('ctl2', 'hostname', '--all-ip-addresses').strip()}\n"


def test_no_row_is_missing(kept: Cluster, jobs: list[str]) -> None:
    for host in ROWS:
        _has_rows(kept, host, jobs)
    shown = ("sacct", "-X", "-n", "-P", "--format=jobid,state", "-j", ",".join(jobs))
    said = dict(line.split("|") for line in kept.on("ctl1", *shown).splitlines())
    assert {job: said.get(job) for job in jobs if said.get(job) != "COMPLETED"} == {}


def test_the_arbitrator_gets_rows_and_one_with_rows_a_vote_alone(kept: Cluster, jobs: list[str]) -> None:
    edit(kept, "inventory.ini", (f"{_OTHER}ctl2\nctl1\n", f"{_OTHER}ctl1\nctl2\n"))
    said = kept.deploy(expect=1).stdout
    assert "this host is a member of the accounting database with rows" in said
    kept.on("ctl2", "systemctl", "disable", "--now", "slurmdbd", "mariadb")
    kept.on("ctl2", "rm", "/etc/mysql/deploy-cluster.pem")
    kept.deploy()
    wait_until(
        "both are members of three", lambda: all(is_synced(kept, at) for at in ("login1", "ctl1")), 300
    )
    assert kept.on("ctl1", "systemctl", "is-active", "garb", expect=None) == "inactive\n"
    for host in ("login1", "ctl1"):
        _has_rows(kept, host, jobs)
    assert "(0 changes" in kept.deploy().stdout


def _of_a_new_account(cluster: Cluster, name: str) -> str:
    """A job of an account that slurmctld learns of from the slurmdbd that serves."""
    add = ("sacctmgr", "--immediate", "--quiet", "add")
    cluster.on("ctl1", *add, "account", name)
    cluster.on("ctl1", *add, "user", "alice", f"account={name}")
    taken: list[str] = []

    def is_taken() -> bool:
        sbatch = f"sbatch --parsable --account {name} --output /dev/null --wrap true 2>/dev/null"
        taken[:] = cluster.as_user(sbatch, expect=None).split()
        return bool(taken)

    wait_until("a job of a new account is taken", is_taken, 120)
    return taken[0]


def _has_rows(cluster: Cluster, host: str, jobs: list[str]) -> None:
    """What one member confirms the other one has received, which writes it a moment later."""
    wait_until("the rows are there", lambda: set(jobs) <= rows(cluster, host), 120)


def _listens(cluster: Cluster, host: str) -> bool:
    """Whether slurmdbd takes connections there; one that stands by does not."""
    return bool(
        cluster.on(host, "ss", "--no-header", "--listening", "--tcp", "--numeric", "sport = :6819").strip()
    )


def _runs(cluster: Cluster, host: str) -> bool:
    """Whether slurmdbd has started there."""
    return cluster.on(host, "systemctl", "is-active", "slurmdbd", expect=None) == "active\n"


def _failed_commits(cluster: Cluster) -> list[str]:
    """What both slurmdbd said of transactions that were cut off: 1213 is MariaDB's number for that."""
    return [cluster.on(host, "grep", "--count", "failed: 1213", _LOG, expect=None) for host in ROWS]
