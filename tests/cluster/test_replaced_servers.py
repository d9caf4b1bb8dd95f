"""New machines take the places of servers that are lost with their disks: one by one, and all at once."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.lab.state import container_name
from tests.cluster.jobs import UNTIL_TOLD, submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, run, wait_until
from tests.cluster.members_lab import edit, rows
from tests.cluster.test_backup import Key, make_key

pytestmark = [pytest.mark.one_release, pytest.mark.more, pytest.mark.long]

_STATE = "/srv/slurm/state"
_MACHINES = ("--controllers", "3", "--nodes", "2")
"""So many there are; a lab makes those anew that are gone."""
_DATABASE = "[slurm-database]\nlogin1\nctl3\nctl1\n"
_VOTES = "SHOW STATUS WHERE Variable_name IN ('wsrep_cluster_size', 'wsrep_local_state_comment')"
_PARTITION = """
slurmctld_partitions: [{name: batch, default: true, parameters: {OverSubscribe: "FORCE:6"}}]
"""


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Key:
    return make_key(tmp_path_factory.mktemp("key") / "backup.key")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, key: Key) -> Iterator[Cluster]:
    """ctl1 and ctl2 are controllers; login1 and ctl3 have the database, ctl1 a vote. node2 is nothing yet."""
    with booted("replaced", tmp_path_factory, *_MACHINES, "--gpus", "0", release="trixie") as made:
        prepare(made, key)
        made.deploy()
        yield made


def prepare(made: Cluster, key: Key) -> None:
    """The site of a new lab."""
    edit(
        made,
        "inventory.ini",
        (line(made, "node2"), ""),
        ("[slurm-node]\nnode1\nnode2\n", "[slurm-node]\nnode1\n"),
        ("[slurm-master]\nctl1\nctl2\nctl3\n", "[slurm-master]\nctl1\nctl2\n"),
        ("[slurm-database]\nlogin1\n", _DATABASE),
        ("\n\n[all:vars]", "\nslurm-database\n\n[all:vars]"),
    )
    # With a firewall, whoever comes by a new address has to be let in before it joins.
    everywhere = f"\nbackup_recipients: [{key.recipient}]\nfirewall_admin_networks: [10.0.0.0/8]\n"
    for file, more in (("slurm-master", _PARTITION), ("all", everywhere)):
        with (made.directory / "group_vars" / f"{file}.yml").open("a") as text:
            text.write(more)


@pytest.fixture(scope="module")
def jobs(served: Cluster) -> list[str]:
    """One that runs until it is told, one that is held; tests add others, which end."""
    running = submit(served, "--mem=10M", UNTIL_TOLD)
    wait_for_job(served, running, "RUNNING", host="login1")
    return [running, submit(served, "--hold --mem=10M", "true")]


def test_a_new_second_controller(served: Cluster, jobs: list[str]) -> None:
    node(served, "drain", "node1", "--reason", "fan")
    lose(served, "ctl2")
    served.up(*_MACHINES)
    served.deploy()
    is_whole(served, jobs)
    assert drains(served) == {"node1": ["fan"]}
    assert "(0 changes" in served.deploy().stdout
    node(served, "resume", "node1")


def test_a_new_first_controller_with_the_vote_on_the_database(served: Cluster, jobs: list[str]) -> None:
    node(served, "drain", "node1", "--reason", "disk")
    is_saved(served, jobs[1])
    lose(served, "ctl1")
    wait_until("ctl2 leads", lambda: leader(served) == "ctl2", 240)
    node(served, "resume", "node1")
    jobs.append(ended(served))
    served.up(*_MACHINES)
    served.deploy()
    is_whole(served, jobs)
    assert drains(served) == {}
    assert "(0 changes" in served.deploy().stdout


def test_a_new_first_host_of_the_database(served: Cluster, jobs: list[str]) -> None:
    """It is the login node, too."""
    lose(served, "login1")
    said = run(*DEPLOY, "status", str(served.inventory), "--json", expect=None).stdout
    assert json.loads(said)["database"]["login1"] is None
    served.up(*_MACHINES)
    served.deploy()
    is_whole(served, jobs)
    jobs.append(ended(served))
    assert "(0 changes" in served.deploy().stdout


def test_a_first_controller_by_another_name(served: Cluster, jobs: list[str]) -> None:
    """It has a vote on the database, too."""
    is_saved(served, jobs[1])
    gone, new = line(served, "ctl1"), line(served, "node2")
    lose(served, "ctl1")
    wait_until("ctl2 leads", lambda: leader(served) == "ctl2", 240)
    edit(
        served,
        "inventory.ini",
        (gone, new),
        ("[slurm-master]\nctl1\n", "[slurm-master]\nnode2\n"),
        (_DATABASE, _DATABASE.replace("ctl1", "node2")),
    )
    served.deploy()
    node(served, "remove", "ctl1", "--gone")
    is_whole(served, jobs, controllers=("node2", "ctl2"))
    jobs.append(ended(served))
    assert "(0 changes" in served.deploy().stdout


def test_a_host_of_the_database_by_another_name(served: Cluster, jobs: list[str]) -> None:
    served.up(*_MACHINES)
    gone, new = line(served, "ctl3"), line(served, "ctl1")
    lose(served, "ctl3")
    database = _DATABASE.replace("ctl1", "node2")
    edit(served, "inventory.ini", (gone, new), (database, database.replace("ctl3", "ctl1")))
    served.deploy()
    node(served, "remove", "ctl3", "--gone")
    is_whole(served, jobs, controllers=("node2", "ctl2"), database=("login1", "ctl1"))
    jobs.append(ended(served))
    assert "(0 changes" in served.deploy().stdout


def test_all_servers_are_new_and_a_backup_makes_the_cluster_of_them(
    served: Cluster, key: Key, jobs: list[str]
) -> None:
    """With the state and the secrets; the job on the node goes on, and is accounted."""
    is_saved(served, jobs[1])
    archive = Path(json.loads(run(*DEPLOY, "backup", str(served.inventory), "--json").stdout)["file"])
    for name in ("node2", "ctl2", "login1", "ctl1"):
        lose(served, name)
    served.up(*_MACHINES)
    served.on("ctl2", "find", _STATE, "-mindepth", "1", "-delete")
    (served.directory / "secrets.yml").unlink()
    words = ("restore", str(served.inventory), str(archive), "--identity", str(key.file))
    run(*DEPLOY, *words, "--yes", "--no-validate", "--output", "plain", seconds=1500)
    is_whole(served, jobs, controllers=("node2", "ctl2"), database=("login1", "ctl1"))
    served.as_user("touch stop")
    wait_for_job(served, jobs[0], "COMPLETED", seconds=240, host="login1")
    served.on("login1", "scontrol", "release", jobs[1])
    wait_for_job(served, jobs[1], "COMPLETED", seconds=240, host="login1")
    assert int(ended(served)) > max(map(int, jobs))


def line(cluster: Cluster, name: str) -> str:
    """A machine's line in the inventory, whether it stands there or not."""
    return f"{name} ansible_host={cluster.on(name, 'hostname', '--all-ip-addresses').strip()}\n"


def lose(cluster: Cluster, name: str) -> None:
    """A machine is gone with its disk."""
    run("podman", "rm", "--force", "--volumes", "--time", "0", container_name(cluster.name, name))


def node(cluster: Cluster, verb: str, *words: str) -> str:
    return run(*DEPLOY, "node", verb, str(cluster.inventory), *words).stdout


def drains(cluster: Cluster) -> dict[str, list[str]]:
    listed = json.loads(node(cluster, "list", "--json"))
    return {each["name"]: [drain["why"] for drain in each["drains"]] for each in listed if each["drains"]}


def leader(cluster: Cluster) -> str | None:
    said = run(*DEPLOY, "status", str(cluster.inventory), "--json", expect=None).stdout
    found: str | None = json.loads(said)["controllers"]["leader"]
    return found


def ended(cluster: Cluster) -> str:
    """A job that is accounted as completed."""
    job = submit(cluster, "--mem=10M --output=/dev/null", "true")
    wait_for_job(cluster, job, "COMPLETED", seconds=240, host="login1")
    return job


def is_saved(cluster: Cluster, job: str) -> None:
    """Waits until slurmctld has written what it was told up to now."""
    cluster.on("login1", "touch", f"{_STATE}/of-the-test")
    cluster.on("login1", "scontrol", "update", f"JobId={job}", "Comment=to be saved")
    written = ("find", f"{_STATE}/job_state", "-newer", f"{_STATE}/of-the-test")
    wait_until("the queue is saved", lambda: bool(cluster.on("login1", *written)), 120)


def is_whole(
    cluster: Cluster,
    jobs: list[str],
    *,
    controllers: tuple[str, str] = ("ctl1", "ctl2"),
    database: tuple[str, str] = ("login1", "ctl3"),
) -> None:
    """The first leads and the second stands by; all three have a vote, and both all rows; no job is lost."""
    wanted = dict(zip(controllers, ("leads", "stands by"), strict=True))

    def stands() -> bool:
        said = run(*DEPLOY, "status", str(cluster.inventory), "--json", expect=None).stdout
        return bool(json.loads(said)["controllers"]["stands"] == wanted)

    wait_until("the first leads and the other stands by", stands, 240)

    def is_synced(host: str) -> bool:
        said = cluster.on(host, "mariadb", "-Ne", _VOTES, expect=None).splitlines()
        return sorted(said) == ["wsrep_cluster_size\t3", "wsrep_local_state_comment\tSynced"]

    wait_until("both have three votes", lambda: all(map(is_synced, database)), 300)
    wait_until("both have all rows", lambda: all({*jobs} <= rows(cluster, host) for host in database), 240)
    for job, state in zip(jobs, ("RUNNING", "PENDING"), strict=False):
        shown = cluster.on("login1", "scontrol", "show", "job", job)
        assert f"JobState={state}" in shown
        assert "Restarts=0" in shown
