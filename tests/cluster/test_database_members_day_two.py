"""A database on two hosts and an arbitrator: restored, cut, another key, another machine, upgraded, alone."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.lab.state import container_name
from tests.cluster.jobs import submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, run, wait_until
from tests.cluster.members_lab import ALONE, MEMBERS, ROWS, done, edit, is_whole, members_lab, off, on, rows
from tests.cluster.test_backup import Key, make_key, restore
from tests.cluster.test_upgrade import want_the_new

pytestmark = [pytest.mark.one_release, pytest.mark.more]

_ENDING = "/run/systemd/system/mariadb.service.d/slow-end.conf"
_SLOW_END = (
    f"mkdir -p {_ENDING.rpartition('/')[0]}; printf '[Service]\\nExecStop=/bin/sleep 20\\n' > {_ENDING}"
)

_ALERTS = """
import urllib.request
with urllib.request.urlopen("http://127.0.0.1:9090/api/v1/alerts") as answer:
    print(answer.read().decode())
"""


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Key:
    return make_key(tmp_path_factory.mktemp("key") / "backup.key")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, key: Key) -> Iterator[Cluster]:
    with members_lab("members-two", tmp_path_factory, MEMBERS, "--monitoring") as made:
        backed_up(made, key)
        made.deploy()
        yield made


def backed_up(made: Cluster, key: Key) -> None:
    """Backups of it are for this key."""
    with (made.directory / "group_vars" / "all.yml").open("a") as file:
        file.write(f"\nbackup_recipients: [{key.recipient}]\nslurmctld_slurmd_timeout: 900\n")


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


def test_a_member_that_is_ending_is_not_taken_for_one_that_serves(kept: Cluster) -> None:
    kept.on("login1", "systemctl", "stop", "mariadb")
    kept.on("ctl2", "sh", "-c", f"{_SLOW_END}; systemctl daemon-reload; systemctl stop --no-block mariadb")
    state = ("systemctl", "is-active", "mariadb")
    assert kept.on("ctl2", *state, expect=None).strip() == "deactivating"
    assert kept.on("ctl2", "mariadb", "-Ne", "SELECT 1").strip() == "1"
    kept.on("ctl2", "sh", "-c", f"rm {_ENDING}")
    kept.deploy()
    is_whole(kept)
    done(kept)


def test_the_side_without_the_arbitrator_answers_nothing_until_the_network_is_back(kept: Cluster) -> None:
    asked = ("mariadb", "-Ne", "SELECT COUNT(*) FROM slurm_acct_db.user_table")
    with _cut(kept, "login1"):
        wait_until("it refuses", lambda: kept.on("login1", *asked, expect=None) == "", 120)
        assert kept.on("ctl2", *asked).strip().isdigit()
        job = kept.as_user("sbatch --parsable --wrap true", host="ctl1").strip()
        wait_for_job(kept, job, "COMPLETED", seconds=240)
        wait_until("the other side has its row", lambda: job in rows(kept, "ctl2"), 120)
    is_whole(kept)
    wait_until("both have the row", lambda: job in rows(kept, "login1"), 120)
    assert rows(kept, "ctl2") == rows(kept, "login1")


def test_two_alerts_fire_where_members_do_not_hear_each_other(kept: Cluster) -> None:
    """With shorter times than those that the rules have."""
    rules = "/etc/prometheus/rules/services.yml"
    kept.on("ctl1", "cp", rules, "/run/services.yml")
    kept.on("ctl1", "sed", "-i", "/alert: DatabaseMember/,/for:/s/for: .*/for: 5s/", rules)
    kept.on("ctl1", "systemctl", "reload", "prometheus")
    try:
        with _cut(kept, "login1", "-p", "tcp", "-m", "multiport", "--ports", "4444,4567,4568"):
            wanted = {("DatabaseMemberMissing", "ctl2"), ("DatabaseMemberNotSynced", "login1")}
            wait_until("both fire", lambda: wanted <= _firing(kept), 300)
        is_whole(kept)
        wait_until("none fires", lambda: not wanted & _firing(kept), 300)
    finally:
        kept.on("ctl1", "cp", "/run/services.yml", rules)
        kept.on("ctl1", "systemctl", "reload", "prometheus")


def _firing(cluster: Cluster) -> set[tuple[str, str]]:
    """Alerts that fire, and where."""
    said = json.loads(cluster.on("ctl1", "python3", "-c", _ALERTS))["data"]["alerts"]
    return {
        (alert["labels"]["alertname"], alert["labels"].get("instance", ""))
        for alert in said
        if alert["state"] == "firing"
    }


@contextmanager
def _cut(cluster: Cluster, host: str, *what: str) -> Iterator[None]:
    """No packet of a kind, by default of any, comes to a host or leaves it."""
    pid = run("podman", "inspect", "--format", "{{.State.Pid}}", container_name(cluster.name, host))
    inside = ("nsenter", "-t", pid.stdout.strip(), "-n", "iptables")
    chains = (("INPUT", "-i"), ("OUTPUT", "-o"))
    try:
        for chain, way in chains:
            run(*inside, "-A", chain, "!", way, "lo", *what, "-j", "DROP")
        yield
    finally:
        for chain, way in chains:
            run(*inside, "-D", chain, "!", way, "lo", *what, "-j", "DROP")


def test_members_get_another_key(kept: Cluster) -> None:
    held, before = _certificates(kept), {host: rows(kept, host) for host in ROWS}
    secrets = kept.directory / "secrets.yml"
    lines = secrets.read_text().splitlines(keepends=True)
    assert any(line.startswith("mariadb_cluster_key:") for line in lines)
    secrets.write_text("".join(line for line in lines if not line.startswith("mariadb_cluster_key:")))
    kept.deploy("--new-secrets")
    is_whole(kept)
    after = _certificates(kept)
    assert len({*after}) == 1
    assert not {*held} & {*after}
    assert {host: rows(kept, host) for host in ROWS} == before
    done(kept)
    assert "(0 changes" in kept.deploy().stdout


def _certificates(cluster: Cluster) -> list[str]:
    """What MariaDB and the arbitrator show to each other now."""
    ask = "openssl s_client -connect {}:4567 </dev/null 2>/dev/null | openssl x509 -noout -fingerprint"
    return [cluster.on(host, "sh", "-c", ask.format(host)).strip() for host in (*ROWS, "ctl1")]


def test_a_new_machine_gets_all_rows(kept: Cluster) -> None:
    before = rows(kept, "ctl2")
    command = ("podman", "rm", "--force", "--volumes", "--time", "0", container_name(kept.name, "login1"))
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    kept.up()
    kept.deploy()
    is_whole(kept)
    assert rows(kept, "login1") == before == rows(kept, "ctl2")
    done(kept)


def test_a_drill_has_the_members_too(kept: Cluster, key: Key, tmp_path: Path) -> None:
    _state_is_saved(kept)
    run(*DEPLOY, "backup", str(kept.inventory))
    hosts = ("ctl1", "ctl2", "login1", "node1")
    for host in hosts:
        off(kept, host)
    try:
        name = f"{kept.name}-drill"
        command = (*DEPLOY, "drill", str(kept.inventory), "--identity", str(key.file), "--name", name)
        said = run(*command, "--json", "--report", str(tmp_path), seconds=1800)
    finally:
        for host in hosts:
            on(kept, host)
    report = json.loads(said.stdout)
    assert report["outcome"] == "passed"
    assert report["lab"]["apart"]["machines"] == len(hosts)
    is_whole(kept)


def test_an_upgrade_converts_the_database_once(kept: Cluster) -> None:
    before = rows(kept, "ctl2")
    want_the_new(kept)
    kept.deploy()
    came = json.loads(
        run(*DEPLOY, "upgrade", str(kept.inventory), "--no-validate", "--json", seconds=1800).stdout
    )
    assert came["hurt"] == []
    assert set(came["backups"]) == {"ctl1", "ctl2"}
    assert came["done"][:3] == ["ctl2", "login1", "ctl1"]
    shape = ("dpkg-query", "--show", "--showformat", "${Version}", "slurm-client")
    assert {kept.on(host, *shape)[:5] for host in ("ctl1", *ROWS, "node1")} == {"26.05"}
    is_whole(kept)
    assert before <= rows(kept, "ctl2")
    job = done(kept)
    wait_until("both have its row", lambda: all(job in rows(kept, host) for host in ROWS), 120)
    said = kept.on("login1", "cat", "/var/log/slurm/slurmdbd.log")
    assert "onverting" not in said.rpartition("version 26.05")[2]


def test_one_host_has_the_database_again_with_all_rows(kept: Cluster) -> None:
    before = rows(kept, "ctl2")
    edit(kept, "inventory.ini", (MEMBERS, ALONE))
    kept.on("login1", "systemctl", "disable", "--now", "slurmdbd", "mariadb")
    kept.on("ctl1", "systemctl", "disable", "--now", "garb")
    kept.deploy()
    job = done(kept)
    assert rows(kept, "ctl2") == before | {job}
    said = kept.on("ctl2", "mariadb", "-Ne", "SHOW STATUS LIKE 'wsrep_cluster_size'")
    assert said.split() == ["wsrep_cluster_size", "0"]
    assert "AccountingStorageBackupHost = (null)" in kept.on("ctl1", "scontrol", "show", "config")
    assert "(0 changes" in kept.deploy().stdout
