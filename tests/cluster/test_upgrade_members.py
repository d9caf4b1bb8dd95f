"""Slurm's next release with two controllers and a database on three hosts, killed in between, under a job."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cluster.jobs import UNTIL_TOLD, submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, run, wait_until
from tests.cluster.members_lab import edit, off, on, put_apart
from tests.cluster.test_upgrade import NEW, OLD, begun, said_so_far, upgrade, want_the_new

pytestmark = [pytest.mark.one_release, pytest.mark.more, pytest.mark.long]

_HOSTS = ("ctl1", "ctl2", "login1", "ctl3", "node1")
_PARTITION = """
slurmctld_partitions: [{name: batch, default: true, parameters: {OverSubscribe: "FORCE:6"}}]
"""


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, str]]:
    """ctl1 and ctl2 are controllers; login1 and ctl3 have the database, ctl1 a vote. A job runs."""
    options = ("--controllers", "3", "--nodes", "1", "--gpus", "0")
    with booted("upgrade-members", tmp_path_factory, *options, release="trixie") as made:
        put_apart(made)
        own = "group_vars/slurm-master.yml"
        edit(made, own, ("slurmctld_slurmd_timeout: 30\n", f"slurmctld_slurmd_timeout: 900\n{_PARTITION}"))
        made.deploy()
        job = submit(made, "-w node1 --mem=50M", UNTIL_TOLD)
        wait_for_job(made, job, "RUNNING")
        want_the_new(made)
        yield made, job


def versions(cluster: Cluster) -> dict[str, str]:
    """By host the release of what it serves with."""
    units = {
        "ctl1": "slurmctld",
        "ctl2": "slurmctld",
        "login1": "slurmdbd",
        "ctl3": "slurmdbd",
        "node1": "slurmd",
    }
    shape = ("dpkg-query", "--show", "--showformat", "${Version}")
    return {name: cluster.on(name, *shape, units[name])[:5] for name in _HOSTS}


def runs(cluster: Cluster, host: str, unit: str) -> bool:
    return cluster.on(host, "systemctl", "is-active", unit, expect=None).strip() == "active"


def stands_still(cluster: Cluster, host: str, unit: str) -> bool:
    """It does not run, and neither a boot nor another unit starts it."""
    said = cluster.on(host, "systemctl", "is-enabled", unit, expect=None).strip()
    return said == "masked" and not runs(cluster, host, unit)


def is_member_again(cluster: Cluster, host: str) -> None:
    """Waits until the MariaDB of a host has what the others have, which would have started its slurmdbd."""
    asked = ("mariadb", "-Ne", "SHOW STATUS LIKE 'wsrep_local_state_comment'")
    wait_until("it is a member", lambda: "Synced" in cluster.on(host, *asked, expect=None), 240)


@contextmanager
def converting(cluster: Cluster, host: str) -> Iterator[None]:
    """While it lasts slurmdbd of a host runs, and comes to no end with its database, as with a large one."""
    held = "while [ -e /run/converts ]; do sleep 1; done; exec /usr/sbin/slurmdbd -D -s"
    text = f"[Service]\nExecStart=\nExecStart=/bin/sh -c '{held}'\n"
    place = "/run/systemd/system/slurmdbd.service.d"
    cluster.on(host, "mkdir", "--parents", place)
    cluster.on(host, "sh", "-c", 'printf %s "$1" > "$2"', "sh", text, f"{place}/converts.conf")
    cluster.on(host, "sh", "-c", "touch /run/converts; systemctl daemon-reload")
    try:
        yield
    finally:
        cluster.on(host, "sh", "-c", f"rm -r /run/converts {place}; systemctl daemon-reload")


def move(cluster: Cluster, verb: str) -> None:
    run(*DEPLOY, verb, str(cluster.inventory), "--yes")


def test_where_another_controller_leads_nothing_begins(apart: tuple[Cluster, str]) -> None:
    cluster, _ = apart
    move(cluster, "failover")
    assert (
        "ctl2 leads; an upgrade begins where the first controller does" in upgrade(cluster, expect=1).stderr
    )
    assert set(versions(cluster).values()) == {OLD}
    move(cluster, "failback")


def test_killed_before_anything_changed_it_leaves_what_a_run_puts_right(
    apart: tuple[Cluster, str],
) -> None:
    cluster, job = apart
    with begun(cluster) as process:

        def is_masked() -> bool:
            assert process.poll() is None, f"it ended before slurmdbd stopped: {said_so_far(cluster)}"
            return stands_still(cluster, "ctl3", "slurmdbd")

        wait_until("the slurmdbd that stands by does so no more", is_masked, seconds=600)
        process.send_signal(signal.SIGKILL)
    assert set(versions(cluster).values()) == {OLD}
    cluster.on("ctl3", "systemctl", "kill", "--signal=KILL", "mariadb")
    is_member_again(cluster, "ctl3")
    assert not runs(cluster, "ctl3", "slurmdbd")
    cluster.deploy()
    assert runs(cluster, "login1", "slurmdbd")
    assert runs(cluster, "ctl3", "slurmdbd")
    assert job in cluster.on("ctl1", "squeue", "--noheader", "--states", "running", "--format", "%i").split()


def test_while_the_database_is_converted_nobody_else_writes(apart: tuple[Cluster, str]) -> None:
    """Longer than is waited for: what is typed again waits once more."""
    cluster, job = apart
    silent = "slurmdbd does not answer on port 6819"
    with converting(cluster, "login1"):
        assert silent in upgrade(cluster, expect=1).stderr
        assert (versions(cluster)["login1"], runs(cluster, "login1", "slurmdbd")) == (NEW, True)
        off(cluster, "ctl3")
        on(cluster, "ctl3")
        is_member_again(cluster, "ctl3")
        assert stands_still(cluster, "ctl3", "slurmdbd")
        said = run(*DEPLOY, "cluster", str(cluster.inventory), "--no-validate", expect=None, seconds=900)
        assert said.returncode != 0
        assert f"its slurmdbd {OLD} could not take over from login1 with {NEW}" in said.stdout + said.stderr
        before = cluster.on("login1", "systemctl", "show", "slurmdbd", "--property=InvocationID")
        assert silent in upgrade(cluster, expect=1).stderr
        assert cluster.on("login1", "systemctl", "show", "slurmdbd", "--property=InvocationID") == before
        assert stands_still(cluster, "ctl3", "slurmdbd")
        assert versions(cluster)["ctl3"] == versions(cluster)["ctl1"] == OLD
    assert job in cluster.on("ctl1", "squeue", "--noheader", "--states", "running", "--format", "%i").split()


def test_killed_between_the_controllers_the_old_one_does_not_stand_by(apart: tuple[Cluster, str]) -> None:
    cluster, _ = apart
    with begun(cluster) as process:

        def is_new() -> bool:
            assert process.poll() is None, (
                f"it ended before the first controller was new: {said_so_far(cluster)}"
            )
            return versions(cluster)["ctl1"] == NEW

        wait_until("the first controller is new", is_new, seconds=600)
        process.send_signal(signal.SIGKILL)
    assert versions(cluster)["login1"] == versions(cluster)["ctl3"] == NEW
    if versions(cluster)["ctl2"] == OLD:
        off(cluster, "ctl2")
        on(cluster, "ctl2")
        wait_until("it has booted", lambda: runs(cluster, "ctl2", "multi-user.target"), 240)
        assert stands_still(cluster, "ctl2", "slurmctld")
        said = run(*DEPLOY, "cluster", str(cluster.inventory), "--no-validate", expect=None, seconds=900)
        assert said.returncode != 0
        assert "slurm-version-skew" in said.stdout + said.stderr
        assert not runs(cluster, "ctl2", "slurmctld")


def test_it_goes_on_to_its_end_and_the_job_ran_through(apart: tuple[Cluster, str]) -> None:
    cluster, job = apart
    came = json.loads(upgrade(cluster, "--json", expect=0).stdout)
    assert (came["hurt"], came["without_end"]) == ([], [])
    assert set(versions(cluster).values()) == {NEW}
    ping = cluster.on("ctl1", "scontrol", "ping")
    assert ping.count(" is UP") == 2
    for host, unit in (
        ("ctl2", "slurmctld"),
        ("login1", "slurmdbd"),
        ("ctl3", "slurmdbd"),
        ("login1", "sackd"),
    ):
        assert runs(cluster, host, unit)
    cluster.as_user("touch stop")
    wait_for_job(cluster, job, "COMPLETED", seconds=120)
    assert "nothing to do" in upgrade(cluster, expect=0).stdout
    assert "converged" in cluster.deploy().stdout


def test_whoever_leads_accounts_for_jobs(apart: tuple[Cluster, str]) -> None:
    """From 26.05 on one that took over keeps what it has to say, unless it reads its configuration anew."""
    cluster, _ = apart
    move(cluster, "failover")
    is_accounted(cluster)
    move(cluster, "failback")
    is_accounted(cluster)
    # The second time it is a slurmctld that read its configuration anew, and stood by since.
    for _ in range(2):
        run(*DEPLOY, "lab", "stop", "ctl1", "--name", cluster.name)
        is_accounted(cluster)
        run(*DEPLOY, "lab", "start", "ctl1", "--name", cluster.name)
        wait_until("ctl1 leads again", lambda: leads(cluster, "ctl1"), seconds=240)
        is_accounted(cluster)


def is_accounted(cluster: Cluster) -> None:
    """A job ends, and slurmdbd was told of it by the controller that leads."""
    submitted = "timeout 20 sbatch --parsable --mem=10M --output=/dev/null --wrap true"
    said: list[str] = []

    def is_taken() -> bool:
        said[:] = cluster.as_user(submitted, expect=None).split()
        return bool(said) and said[0].isdigit()

    wait_until("a job is taken", is_taken, seconds=240)
    wait_for_job(cluster, said[0], "COMPLETED", seconds=240, host="login1")


def leads(cluster: Cluster, name: str) -> bool:
    said = run(*DEPLOY, "status", str(cluster.inventory), "--json", expect=None).stdout
    return bool(json.loads(said)["controllers"]["leader"] == name)
