"""From one controller to two and back, under jobs; the one that leads is lost, and the network between."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deploy.lab.state import container_name
from deploy.run.archive import members
from tests.cluster.jobs import UNTIL_TOLD, submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, Result, booted, run, wait_until
from tests.cluster.members_lab import edit
from tests.cluster.test_backup import Key, make_key

pytestmark = [pytest.mark.one_release, pytest.mark.more]

_STATE = "/srv/slurm/state"
_LOCATION = f"slurmctld_state_save_location: {_STATE}\n"
_DATABASE = "[slurm-database]\nlogin1\n\n"


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Key:
    return make_key(tmp_path_factory.mktemp("key") / "backup.key")


@pytest.fixture(scope="module")
def controlled(tmp_path_factory: pytest.TempPathFactory, key: Key) -> Iterator[Cluster]:
    """A cluster with one controller, and a machine that is none yet."""
    options = ("--controllers", "2", "--nodes", "2", "--gpus", "0")
    with booted("controllers", tmp_path_factory, *options, release="trixie") as made:
        edit(made, "inventory.ini", (_line(made), ""), ("ctl1\nctl2\n", "ctl1\n"), (_DATABASE, ""))
        edit(made, "group_vars/slurm-master.yml", (_LOCATION, ""))
        with (made.directory / "group_vars" / "all.yml").open("a") as file:
            file.write(f"\nbackup_recipients: [{key.recipient}]\n")
        made.deploy()
        yield made


@pytest.fixture(scope="module")
def jobs(controlled: Cluster) -> tuple[str, str]:
    """One that runs until it is told, and one that waits for its node."""
    running = submit(controlled, "-w node1 --exclusive", UNTIL_TOLD)
    wait_for_job(controlled, running, "RUNNING")
    return running, submit(controlled, "-w node1 --exclusive", "true")


def test_the_database_goes_to_a_host_of_its_own(controlled: Cluster, jobs: tuple[str, str]) -> None:
    edit(controlled, "inventory.ini", ("[slurm-node]", _DATABASE + "[slurm-node]"))
    # Whether it runs or not.
    controlled.on("ctl1", "systemctl", "stop", "slurmctld")
    said = controlled.deploy(expect=1).stdout
    assert "the accounting database is on ctl1, and on login1 it would begin anew" in said
    controlled.on("ctl1", "systemctl", "start", "slurmctld")
    controlled.on("ctl1", "systemctl", "disable", "--now", "slurmdbd")
    dump = controlled.on("ctl1", "mariadb-dump", "--single-transaction", "slurm_acct_db")
    load = "systemctl stop slurmdbd && mariadb slurm_acct_db && systemctl start slurmdbd"
    command = ["podman", "exec", "-i", container_name(controlled.name, "login1"), "sh", "-c", load]
    subprocess.run(command, input=dump, text=True, check=True)
    edit(
        controlled,
        "group_vars/slurm-master.yml",
        ("slurmctld_timeout", "slurmctld_database_was_on: ctl1\nslurmctld_timeout"),
    )
    controlled.deploy()
    _are_there(controlled, jobs)
    assert "AccountingStorageHost   = login1" in controlled.on("ctl1", "scontrol", "show", "config")


def test_the_state_goes_to_a_directory_that_all_mount(controlled: Cluster, jobs: tuple[str, str]) -> None:
    edit(controlled, "group_vars/slurm-master.yml", ("slurmctld_timeout", _LOCATION + "slurmctld_timeout"))
    assert "LOSES JOBS" not in controlled.plan(expect=3)
    controlled.deploy()
    _are_there(controlled, jobs)
    controlled.on("ctl1", "test", "-e", f"{_STATE}/job_state")
    controlled.on("ctl1", "test", "-e", "/var/spool/slurmctld/deploy_moved")


def test_a_second_one_that_is_not_there_leaves_the_first_as_it_is(
    controlled: Cluster, jobs: tuple[str, str]
) -> None:
    before = _first(controlled)
    text = (controlled.directory / "inventory.ini").read_text()
    address, own = _line(controlled).split("=")[1].strip(), "ctl2 ansible_host="
    nowhere = address.rpartition(".")[0] + ".250"
    for place, options in ((nowhere, ()), (address, ("--limit", "ctl1"))):
        edit(
            controlled,
            "inventory.ini",
            ("login1 ansible", f"{own}{place}\nlogin1 ansible"),
            ("ctl1\n\n", "ctl1\nctl2\n\n"),
        )
        said = controlled.deploy(*options, expect=4)
        assert "[new-controller-absent]" in said.stderr
        assert _first(controlled) == before
        (controlled.directory / "inventory.ini").write_text(text)
    _are_there(controlled, jobs)


def test_a_second_controller_joins(controlled: Cluster, jobs: tuple[str, str]) -> None:
    _node(controlled, "drain", "node2", "--reason", "fan")
    line = _line(controlled)
    edit(
        controlled,
        "inventory.ini",
        ("login1 ansible", f"{line}login1 ansible"),
        ("ctl1\n\n", "ctl1\nctl2\n\n"),
    )
    controlled.deploy()
    assert _up(controlled) == {"ctl1", "ctl2"}
    _are_there(controlled, jobs)
    assert _leader(controlled) == "ctl1"
    assert _drains(controlled) == {"node2": ["fan"]}
    notes = {controlled.on(name, "cat", "/var/lib/deploy/ledger.json") for name in ("ctl1", "ctl2")}
    assert len(notes) == 1
    said = controlled.deploy().stdout
    assert "(0 changes" in said


def test_another_one_leads_when_it_is_told_to(controlled: Cluster, jobs: tuple[str, str]) -> None:
    assert _told(controlled) == ("ctl1", {"ctl1": "leads", "ctl2": "stands by"})
    said = _move(controlled, "failover", expect=3)
    assert "nobody agreed [failover-not-agreed]" in said.stderr
    assert _leader(controlled) == "ctl1"
    came = json.loads(_move(controlled, "failover", "--yes", "--json").stdout)
    _is_moved(came, ("ctl1", "ctl2"), jobs)
    assert came["silent"] == ["ctl1"]
    assert _told(controlled) == ("ctl2", {"ctl1": "silent", "ctl2": "leads"})
    _are_there(controlled, jobs)
    assert "ctl2 leads already: nothing to do" in _move(controlled, "failover", "--yes").stdout


def test_it_does_not_lead_without_the_database(controlled: Cluster) -> None:
    controlled.on("login1", "systemctl", "stop", "slurmdbd")
    said = _move(controlled, "failback", "--yes", expect=1).stderr
    assert "it could not lead by its database" in said
    assert _leader(controlled) == "ctl2"
    controlled.on("login1", "systemctl", "start", "slurmdbd")
    clusters = ("sacctmgr", "--noheader", "show", "cluster", "format=cluster")
    wait_until("slurmdbd answers", lambda: bool(controlled.on("ctl2", *clusters, expect=None).strip()), 120)


def test_the_first_one_leads_again(controlled: Cluster, jobs: tuple[str, str]) -> None:
    came = json.loads(_move(controlled, "failback", "--yes", "--json").stdout)
    _is_moved(came, ("ctl2", "ctl1"), jobs)
    assert came["silent"] == []
    assert _told(controlled) == ("ctl1", {"ctl1": "leads", "ctl2": "stands by"})
    _are_there(controlled, jobs)
    said = controlled.deploy().stdout
    assert "(0 changes" in said


def test_the_one_that_stands_by_is_started_again(controlled: Cluster, jobs: tuple[str, str]) -> None:
    controlled.on("ctl2", "systemctl", "stop", "slurmctld")
    assert "ctl2" in controlled.deploy().stdout
    assert _up(controlled) == {"ctl1", "ctl2"}
    assert _leader(controlled) == "ctl1"
    _are_there(controlled, jobs)
    assert "(0 changes" in controlled.deploy().stdout


def test_two_disks_are_no_state_of_two_controllers(controlled: Cluster) -> None:
    """What is refused changes nothing."""
    edit(controlled, "group_vars/slurm-master.yml", (_STATE, "/var/lib/own"))
    assert (
        "/var/lib/own is another directory than on the first controller" in controlled.deploy(expect=1).stdout
    )
    assert _up(controlled) == {"ctl1", "ctl2"}
    edit(controlled, "group_vars/slurm-master.yml", ("/var/lib/own", _STATE))
    controlled.deploy()


def test_while_the_network_between_them_is_cut_one_leads(controlled: Cluster) -> None:
    with _cut(controlled):
        began = _heartbeat(controlled)[0]
        seen = set()

        def later() -> bool:
            when, place = _heartbeat(controlled)
            seen.add(place)
            return when > began + 30  # three times after which the other would take over

        wait_until("slurmctld leads on", later, seconds=300)
        assert seen == {0}
        controlled.as_user("sbatch --wrap true")


def test_a_first_one_without_the_state_leaves_the_lead_where_it_is(
    controlled: Cluster, jobs: tuple[str, str]
) -> None:
    """As at boot, when the storage is not mounted yet: a directory of slurm's is there, and is empty."""
    _led_by_the_second(controlled)
    below = _STATE.rpartition("/")[0]
    hidden = f"mount -t tmpfs -o mode=755 tmpfs {below}; install -d -o slurm -g slurm {_STATE}"
    controlled.on("ctl1", "sh", "-ec", hidden)
    _start_in_vain(controlled, "is not mounted yet")
    for words in ((), ("--limit", "node1")):
        assert "would lead without the queue of that one" in controlled.deploy(*words, expect=1).stdout
    assert controlled.on("ctl1", "ls", _STATE) == ""
    assert _leader(controlled) == "ctl2"
    _are_there(controlled, jobs)
    controlled.on("ctl1", "umount", below)
    wait_until("ctl1 leads again", lambda: _leader(controlled) == "ctl1", seconds=180)
    _are_there(controlled, jobs)


def test_a_state_that_was_copied_by_hand_is_taken(controlled: Cluster, jobs: tuple[str, str]) -> None:
    for name in ("ctl2", "ctl1"):
        controlled.on(name, "systemctl", "stop", "slurmctld")
    copied = f"mv {_STATE} {_STATE}.old; cp -a {_STATE}.old {_STATE}; rm -r {_STATE}.old"
    controlled.on("ctl1", "sh", "-ec", copied)
    controlled.deploy()
    assert _up(controlled) == {"ctl1", "ctl2"}
    assert _leader(controlled) == "ctl1"
    _are_there(controlled, jobs)


def test_a_first_one_does_not_lead_beside_another_that_does_not_hear_it(
    controlled: Cluster, jobs: tuple[str, str]
) -> None:
    _led_by_the_second(controlled)
    with _cut(controlled):
        _start_in_vain(controlled, "ctl2 leads, and cannot be reached")
    wait_until("ctl1 leads again", lambda: _leader(controlled) == "ctl1", seconds=180)
    _are_there(controlled, jobs)


def _led_by_the_second(cluster: Cluster) -> None:
    cluster.on("ctl1", "systemctl", "stop", "slurmctld")
    wait_until("ctl2 takes jobs", lambda: _takes_jobs(cluster), seconds=180)
    assert _leader(cluster) == "ctl2"


def _start_in_vain(cluster: Cluster, why: str) -> None:
    """The first slurmctld is started, and tried again, and the second one leads on."""
    since = cluster.on("ctl1", "date", "+@%s").strip()
    cluster.on("ctl1", "systemctl", "start", "--no-block", "slurmctld")
    said = ("journalctl", "--unit", "slurmctld", "--since", since, "--output", "cat")
    seen = set()

    def is_tried_again() -> bool:
        seen.add(_heartbeat(cluster)[1])
        return cluster.on("ctl1", *said).count(why) > 1

    wait_until("it is tried again", is_tried_again, seconds=180)
    assert seen == {1}


def test_the_second_leads_when_the_first_loses_its_power(controlled: Cluster, jobs: tuple[str, str]) -> None:
    partitions = "slurmctld_partitions: [{name: batch, default: true}, {name: early, nodes: [node2]}]\n"
    edit(
        controlled,
        "group_vars/slurm-master.yml",
        ("slurmctld_timeout: 10", f"{partitions}slurmctld_timeout: 10"),
    )
    controlled.deploy()
    added = submit(controlled, "-w node1 --exclusive", "true")
    _is_saved(controlled, added)
    run(*DEPLOY, "lab", "stop", "ctl1", "--name", controlled.name)
    wait_until("ctl2 takes jobs", lambda: _takes_jobs(controlled), seconds=180)
    assert _leader(controlled) == "ctl2"
    _are_there(controlled, jobs)
    # What is changed meanwhile is changed on the one that leads, and the other one would end jobs on it.
    edit(
        controlled,
        "group_vars/slurm-master.yml",
        ("name: early", "name: late"),
        ("slurmctld_timeout: 10", "slurmctld_timeout: 11"),
    )
    controlled.deploy(expect=4)
    assert "SlurmctldTimeout        = 11 sec" in controlled.on("ctl2", "scontrol", "show", "config")
    # Also where its slurmctld does not run, and nobody leads.
    controlled.on("ctl2", "systemctl", "stop", "slurmctld")
    edit(controlled, "group_vars/slurm-master.yml", ("slurmctld_timeout: 11", "slurmctld_timeout: 12"))
    controlled.deploy(expect=4)
    wait_until("ctl2 takes jobs", lambda: _takes_jobs(controlled), seconds=180)
    assert "SlurmctldTimeout        = 12 sec" in controlled.on("ctl2", "scontrol", "show", "config")
    _node(controlled, "resume", "node2")
    late = submit(controlled, "-p late --no-requeue", "until test -e late; do sleep 1; done")
    wait_for_job(controlled, late, "RUNNING", host="login1")
    run(*DEPLOY, "lab", "start", "ctl1", "--name", controlled.name)
    _is_refused(controlled, "ctl1")
    assert _leader(controlled) == "ctl2"
    said = _move(controlled, "failback", "--yes", expect=1).stderr
    assert "could not lead by its configuration: the cluster was given another one" in said
    assert _leader(controlled) == "ctl2"
    controlled.deploy()
    assert _up(controlled) == {"ctl1", "ctl2"}
    assert _leader(controlled) == "ctl1"
    shown = controlled.on("login1", "scontrol", "show", "job", late)
    assert "JobState=RUNNING" in shown
    controlled.as_user("touch stop late")
    for job in (*jobs, added, late):
        wait_for_job(controlled, job, "COMPLETED", seconds=180)
        states = controlled.on("login1", "sacct", "-X", "-n", "-P", "--format=state,restarts", "-j", job)
        assert states == "COMPLETED|0\n"
    _node(controlled, "drain", "node2", "--reason", "fan")


def _is_refused(cluster: Cluster, name: str) -> None:
    """Its slurmctld is not started, again and again, because the configuration is another one by now."""
    said = ("journalctl", "--boot", "--unit", "slurmctld", "--output", "cat")
    why = "the cluster was given another configuration while this host was away"
    wait_until(f"{name} is refused", lambda: cluster.on(name, *said, expect=None).count(why) > 1, seconds=180)


def test_nodes_are_drained_and_resumed_while_the_first_is_away(controlled: Cluster, key: Key) -> None:
    run(*DEPLOY, "lab", "stop", "ctl1", "--name", controlled.name)
    wait_until("ctl2 takes jobs", lambda: _takes_jobs(controlled), seconds=180)
    assert _drains(controlled) == {"node2": ["fan"]}
    _node(controlled, "drain", "node1", "--reason", "disk")
    _node(controlled, "resume", "node2")
    held = _drains(controlled)
    assert held == {"node1": ["disk"]}
    inside = _backup(controlled, key)
    assert [entry["why"] for entry in json.loads(inside["records/drains.json"])] == ["disk"]
    run(*DEPLOY, "lab", "start", "ctl1", "--name", controlled.name)
    wait_until("ctl1 leads again", lambda: _leader(controlled) == "ctl1", seconds=180)
    assert _drains(controlled) == held
    controlled.on("ctl2", "systemctl", "stop", "slurmctld")
    _node(controlled, "drain", "node2", "--reason", "cable")
    assert _drains(controlled) == {**held, "node2": ["cable"]}
    controlled.on("ctl2", "systemctl", "start", "slurmctld")


def test_a_lost_database_and_an_emptied_state_are_restored(
    controlled: Cluster, key: Key, jobs: tuple[str, str]
) -> None:
    """The database's host is a new machine; of a slurmctld that is left none writes meanwhile."""
    waiting = submit(controlled, "--hold", "true")
    _is_saved(controlled, waiting)
    archive = run(*DEPLOY, "backup", str(controlled.inventory), "--json").stdout
    held = controlled.on("ctl1", "cat", f"{_STATE}/deploy_ledger/drains.json")
    lose_state_and_database(controlled)
    words = ("restore", str(controlled.inventory), json.loads(archive)["file"], "--identity", str(key.file))
    said = run(*DEPLOY, *words, expect=3).stderr
    assert "stopped, and started again at the end: slurmctld on ctl2" in said
    run(*DEPLOY, *words, "--yes", "--no-validate", "--output", "plain", seconds=900)
    _is_restored(controlled, held, waiting)
    states = controlled.on("login1", "sacct", "-X", "-n", "-P", "--format=state", "-j", ",".join(jobs))
    assert states == "COMPLETED\nCOMPLETED\n"
    controlled.on("ctl1", "scancel", waiting)


def lose_state_and_database(cluster: Cluster) -> None:
    """Leaves of the state but the ledger, of the database's host nothing; one slurmctld waits for it."""
    for name in ("ctl1", "ctl2"):
        cluster.on(name, "systemctl", "stop", "slurmctld")
    cluster.on("ctl1", "find", _STATE, "-mindepth", "1", "-not", "-path", "*/deploy_ledger*", "-delete")
    lost = container_name(cluster.name, "login1")
    run("podman", "rm", "--force", "--volumes", "--time", "0", lost)
    cluster.up()
    cluster.on("ctl2", "systemctl", "start", "--no-block", "slurmctld")


def _is_restored(cluster: Cluster, held: str, waiting: str) -> None:
    """Both controllers have the queue, and nobody but root the ledger."""
    assert _up(cluster) == {"ctl1", "ctl2"}
    assert _leader(cluster) == "ctl1"
    assert cluster.on("ctl1", "cat", f"{_STATE}/deploy_ledger/drains.json") == held
    owner = cluster.on("ctl1", "stat", "--format=%U", f"{_STATE}/deploy_ledger", f"{_STATE}/job_state")
    assert owner == "root\nslurm\n"
    assert "JobState=PENDING" in cluster.on("login1", "scontrol", "show", "job", waiting)


def test_a_first_one_that_left_while_it_was_off_does_not_lead(controlled: Cluster) -> None:
    """The one that stays is alone, and writes no heartbeat; the other one is the first by what it knows."""
    line = _line(controlled, "ctl1")
    run(*DEPLOY, "lab", "stop", "ctl1", "--name", controlled.name)
    wait_until("ctl2 takes jobs", lambda: _takes_jobs(controlled), seconds=180)
    edit(controlled, "inventory.ini", (line, ""), ("ctl1\nctl2\n", "ctl2\n"))
    controlled.deploy()
    run(*DEPLOY, "lab", "start", "ctl1", "--name", controlled.name)
    _is_refused(controlled, "ctl1")
    assert _up(controlled) == {"ctl2"}
    _node(controlled, "remove", "ctl1")
    edit(
        controlled,
        "inventory.ini",
        (_line(controlled), line + _line(controlled)),
        ("ctl2\n\n", "ctl1\nctl2\n\n"),
    )
    controlled.deploy()
    assert _up(controlled) == {"ctl1", "ctl2"}
    assert _leader(controlled) == "ctl1"


def test_the_second_leaves(controlled: Cluster) -> None:
    _led_by_the_second(controlled)
    edit(controlled, "inventory.ini", (_line(controlled), ""), ("ctl1\nctl2\n", "ctl1\n"))
    said = controlled.deploy(expect=1).stdout
    assert "slurmctld runs on ctl2, and it would take over from what this configuration does not know" in said
    said = run(*DEPLOY, "node", "remove", str(controlled.inventory), "ctl2", expect=1).stderr
    assert "its slurmctld leads, and no other one stands by" in said
    controlled.on("ctl1", "systemctl", "start", "slurmctld")
    wait_until("ctl1 leads again", lambda: _leader(controlled) == "ctl1", seconds=180)
    run(*DEPLOY, "node", "remove", str(controlled.inventory), "ctl2", seconds=300)
    assert controlled.on("ctl2", "systemctl", "is-active", "slurmctld", expect=None) == "inactive\n"
    controlled.deploy()
    assert _up(controlled) == {"ctl1"}
    # As at boot, where nobody took it out of service there.
    controlled.on("ctl2", "systemctl", "start", "--no-block", "slurmctld")
    _is_refused(controlled, "ctl2")
    controlled.on("ctl2", "systemctl", "stop", "slurmctld")
    assert _drains(controlled) == {"node1": ["disk"], "node2": ["cable"]}
    controlled.on("ctl1", "test", "-e", "/var/lib/deploy/drains.json")
    _node(controlled, "resume", "node[1-2]")
    assert "node1" in controlled.as_user("srun -w node1 hostname")


def _first(cluster: Cluster) -> str:
    """What slurmctld of the first controller was started with, and when."""
    started = "systemctl show --property=ExecMainStartTimestamp slurmctld"
    return cluster.on("ctl1", "sh", "-c", f"{started}; sha256sum /etc/slurm/*.conf /etc/hosts")


def _line(cluster: Cluster, name: str = "ctl2") -> str:
    """The line of a controller, whether it stands in the inventory or not."""
    address = cluster.on(name, "hostname", "--all-ip-addresses").strip()
    return f"{name} ansible_host={address}\n"


def _are_there(cluster: Cluster, jobs: tuple[str, str]) -> None:
    for job, state in zip(jobs, ("RUNNING", "PENDING"), strict=True):
        shown = cluster.on("login1", "scontrol", "show", "job", job)
        assert f"JobState={state}" in shown
        assert "Restarts=0" in shown


def _move(cluster: Cluster, verb: str, *options: str, expect: int = 0) -> Result:
    return run(*DEPLOY, verb, str(cluster.inventory), *options, expect=expect)


def _is_moved(came: dict[str, Any], way: tuple[str, str], jobs: tuple[str, str]) -> None:
    """The lead went this way, and both jobs with it."""
    assert (came["before"], came["leader"]) == way
    assert {job: fate["now"] for fate in came["jobs"] if (job := fate["job"]) in jobs} == {
        jobs[0]: "RUNNING",
        jobs[1]: "PENDING",
    }
    assert came["hurt"] == []


def _told(cluster: Cluster) -> tuple[str, dict[str, str]]:
    """Who leads and how each stands, as `deploy status` says."""
    said = run(*DEPLOY, "status", str(cluster.inventory), "--json", expect=None).stdout
    controllers = json.loads(said)["controllers"]
    return controllers["leader"], controllers["stands"]


def _up(cluster: Cluster) -> set[str]:
    lines = cluster.on("login1", "scontrol", "ping", expect=None).splitlines()
    return {line.split()[-3] for line in lines if line.endswith(" is UP")}


def _node(cluster: Cluster, verb: str, *words: str) -> str:
    return run(*DEPLOY, "node", verb, str(cluster.inventory), *words, seconds=300).stdout


def _backup(cluster: Cluster, key: Key) -> dict[str, bytes]:
    """The members of a backup that is made now."""
    said = run(*DEPLOY, "backup", str(cluster.inventory), "--json").stdout
    return dict(members(Path(json.loads(said)["file"]), (key.file,)))


def _drains(cluster: Cluster) -> dict[str, list[str]]:
    """Why nodes are drained, by the ledger."""
    listed = json.loads(_node(cluster, "list", "--json"))
    return {node["name"]: [drain["why"] for drain in node["drains"]] for node in listed if node["drains"]}


def _heartbeat(cluster: Cluster) -> tuple[int, int]:
    """When who led last, by the file that the one that leads writes; it is not there while one starts."""
    words: list[str] = []

    def is_there() -> bool:
        read = ("od", "-An", "-v", "--endian=big", "-t", "u8", f"{_STATE}/heartbeat")
        words[:] = cluster.on("ctl2", *read, expect=None).split()
        return len(words) == len(("when", "who"))

    wait_until("there is a heartbeat", is_there, seconds=60)
    return int(words[0]), int(words[1])


def _leader(cluster: Cluster) -> str:
    return ("ctl1", "ctl2")[_heartbeat(cluster)[1]]


def _is_saved(cluster: Cluster, job: str) -> None:
    """Waits until slurmctld has written what it was told up to now, and of a job more than that."""
    now = float(cluster.on("ctl1", "date", "+%s.%N"))
    cluster.on("ctl1", "scontrol", "update", f"JobId={job}", "Comment=to be saved")

    def written(name: str) -> Callable[[], bool]:
        command = ("stat", "--format=%.9Y", f"{_STATE}/{name}")
        return lambda: float(cluster.on("ctl1", *command, expect=None) or 0) > now

    wait_until("the queue is saved", written("job_state"), seconds=120)
    # Within five minutes, for a controller that finds no database.
    wait_until("associations are saved", lambda: _has_associations(cluster), seconds=400)


def _has_associations(cluster: Cluster) -> bool:
    return "assoc_mgr_state" in cluster.on("ctl1", "ls", _STATE)


def _takes_jobs(cluster: Cluster) -> bool:
    command = "timeout 10 sbatch --wrap true"
    return "Submitted" in cluster.on("login1", "su", "--login", "alice", "--command", command, expect=None)


@contextmanager
def _cut(cluster: Cluster) -> Iterator[None]:
    """Nothing goes between the controllers."""
    address = cluster.on("ctl1", "hostname", "--all-ip-addresses").strip()
    form = "{{.State.Pid}}"
    pid = run("podman", "inspect", "--format", form, container_name(cluster.name, "ctl2")).stdout.strip()
    rules = [("INPUT", "-s"), ("OUTPUT", "-d")]
    for chain, way in rules:
        run("nsenter", "-t", pid, "-n", "iptables", "-A", chain, way, address, "-j", "DROP")
    try:
        yield
    finally:
        for chain, way in rules:
            run("nsenter", "-t", pid, "-n", "iptables", "-D", chain, way, address, "-j", "DROP")
