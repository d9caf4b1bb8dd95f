"""Slurm from one release to the next but three while jobs run: halted, killed, and brought to its end.

DEPLOY_UPGRADE_NODES is the number of nodes, DEPLOY_UPGRADE_JOBS that of the jobs that run on each,
DEPLOY_UPGRADE_ARRAY the length of the array that waits, DEPLOY_UPGRADE_KILLS how often deploy is killed. With
more than one kill (`make upgrade-long`) a cluster is also upgraded in one go, with all that is proved beside.
"""

import json
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.site.node_lists import fold
from tests.cluster.jobs import UNTIL_TOLD, submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, run, wait_until
from tests.cluster.standin_containers import declare

pytestmark = pytest.mark.more

OLD, NEW = "24.11", "26.05"
_NODES = tuple(f"node{number + 1}" for number in range(int(os.environ.get("DEPLOY_UPGRADE_NODES", "2"))))
_JOBS = int(os.environ.get("DEPLOY_UPGRADE_JOBS", "1"))
_ARRAY = int(os.environ.get("DEPLOY_UPGRADE_ARRAY", "12"))
_KILLS = int(os.environ.get("DEPLOY_UPGRADE_KILLS", "1"))
_RUNNING = [(node, f"{node}-{number}") for node in _NODES for number in range(_JOBS)]
"""A job each: its node, and the directory that it waits in."""
_LATEST_KILL_SECONDS = 60.0
_STREAM = (
    "cd ~; while sleep 1; do sbatch --parsable --mem=10M --output=/dev/null --wrap true"
    " >> stream.ids 2>> stream.refused; done"
)
"""A submission a second; what is refused was never a job."""
_COMMANDS = """
guide: made up
shared: [/home]
commands:
  - {id: hello, guide: {file: made-up.md, heading: none}, wording: described, user: alice,
     run: srun --mem=50M hostname, expect: {output: "^node"}}
  - {id: batch, guide: {file: made-up.md, heading: none}, wording: described, user: alice,
     run: "sbatch --wait --mem=50M --output=out --wrap 'echo hello'; cat out", expect: {output: "^hello$"}}
  - {id: info, guide: {file: made-up.md, heading: none}, wording: described, user: alice,
     run: "sinfo --noheader --format=%P", expect: {output: "^batch"}}
"""
_WHY = "scontrol show job; scontrol show node; sinfo --Node --long"
_BROKEN = "/run/systemd/system/slurmd.service.d/broken.conf"


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, list[str]]]:
    """A cluster of the old release that wants the new one, with jobs that run and an array that waits.

    It has the plugin for containers, which is built for one release of Slurm.
    """
    with booted("upgrade", tmp_path_factory, "--nodes", str(len(_NODES)), "--gpus", "0") as made:
        # A lab's node has few CPUs, and jobs that wait need none.
        partition = {"name": "batch", "default": True, "parameters": {"OverSubscribe": f"FORCE:{_JOBS + 4}"}}
        own = made.directory / "host_vars/ctl1.yml"
        own.parent.mkdir()
        # A node whose slurmd does not start keeps its jobs until then, as on a site.
        said = {"slurmctld_partitions": [partition], "slurmctld_slurmd_timeout": 900}
        own.write_text(json.dumps(said))
        declare(made)
        made.deploy()
        jobs = [
            submit(
                made,
                f"-w {node} --mem=50M --container-image=x.sqsh",
                f"mkdir -p ~/{place}; cd ~/{place}; {UNTIL_TOLD}",
            )
            for node, place in _RUNNING
        ]
        for job in jobs:
            wait_for_job(made, job, "RUNNING")
        written = "echo $SLURM_ARRAY_TASK_ID >> ~/array.log; sleep 20"
        array = submit(
            made, f"--array=1-{_ARRAY}%{max(2, _ARRAY // 25)} --mem=50M --output=/dev/null", written
        )
        want_the_new(made)
        used(made)
        made.on("login1", "systemd-run", "--unit=stream", "--uid=alice", "sh", "-c", _STREAM)
        yield made, [*jobs, *(f"{array}_{task}" for task in range(1, _ARRAY + 1))]


def want_the_new(cluster: Cluster) -> None:
    """The site says the new release, and where it is."""
    sources = ("sed", "-n", r"s/^deb .*\(http[^ ]*\) trixie main.*/\1/p", "/etc/apt/sources.list")
    place = cluster.directory / "group_vars/slurm-cluster.yml"
    repository = {
        "uri": cluster.on("ctl1", *sources).split()[0],
        "suite": "forky",
        "components": ["main"],
        "keyring": "/usr/share/keyrings/debian-archive-keyring.gpg",
        "also": ["libhwloc15", "libhwloc-plugins", "libze1"],
    }
    wanted = {"slurm_packages_version": NEW, "slurm_packages_repository": repository}
    known = json.loads(place.read_text()) if place.exists() else {}
    place.write_text(json.dumps(known | wanted))


def used(cluster: Cluster) -> None:
    """Alice's account used CPUs in a month that is long over: its rows are what rollups leave."""
    name, rows = _cluster_name(cluster), "unix_timestamp(), unix_timestamp(), 0, id_assoc, 1"
    january = cluster.on("ctl1", "date", "+%s", "--date", "2025-01-01").strip()
    columns = "creation_time, mod_time, deleted, id, id_tres, time_start, alloc_secs"
    for period in ("hour", "day", "month"):
        _sql(
            cluster,
            f"insert into {name}_assoc_usage_{period}_table ({columns}) "  # noqa: S608
            f"select {rows}, {january}, 86400 from {name}_assoc_table where user = 'alice' and deleted = 0",
        )


def _sql(cluster: Cluster, statement: str) -> str:
    return cluster.on("ctl1", "mariadb", "slurm_acct_db", "--skip-column-names", "--execute", statement)


def _cluster_name(cluster: Cluster) -> str:
    show = ("sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=cluster")
    return cluster.on("ctl1", *show).strip()


@pytest.fixture(scope="module")
def books(loaded: tuple[Cluster, list[str]]) -> tuple[str, str, str]:
    """Usage, associations and QOS as accounting has them before."""
    return accounted(loaded[0])


def accounted(cluster: Cluster) -> tuple[str, str, str]:
    show = ("sacctmgr", "--noheader", "--parsable2", "show")
    associations = cluster.on(
        "ctl1", *show, "associations", "format=cluster,account,user,qos,fairshare,grptres"
    )
    qos = cluster.on("ctl1", *show, "qos", "format=name,priority,flags,maxtres,grptres")
    name = _cluster_name(cluster)
    usage = "".join(
        _sql(
            cluster,
            f"select '{period}', id, time_start, sum(alloc_secs) "  # noqa: S608
            f"from {name}_assoc_usage_{period}_table where time_start < unix_timestamp('2025-02-01') "
            "group by id, time_start order by id",
        )
        for period in ("hour", "day", "month")
    )
    assert "86400" in usage
    return usage, associations, qos


def upgrade(cluster: Cluster, *options: str, expect: int) -> subprocess.CompletedProcess[str]:
    """`deploy upgrade`; a validation has tests of its own."""
    command = (*DEPLOY, "upgrade", str(cluster.inventory), "--no-validate", *options)
    return run(*command, expect=expect, seconds=900)


def installed(cluster: Cluster) -> dict[str, str]:
    """By host the release of its commands."""
    shape = ("dpkg-query", "--show", "--showformat", "${Version}", "slurm-client")
    return {name: cluster.on(name, *shape)[:5] for name in ("ctl1", "login1", *_NODES)}


def containers(cluster: Cluster, host: str, *nodes: str) -> list[str]:
    """The nodes on which a job of a user's is in a container, submitted from a host."""
    asked = f"--mem=50M -N{len(nodes)} -w {','.join(nodes)} --container-image=x.sqsh"
    said = cluster.as_user(
        f"cd /; timeout 100 srun --verbose {asked} true || {{ {_WHY}; exit 1; }}", host=host
    )
    return sorted(line.rpartition(" ")[2] for line in said.splitlines() if "image x.sqsh on" in line)


def test_a_run_does_not_upgrade_and_says_what_does(
    loaded: tuple[Cluster, list[str]], books: tuple[str, str, str]
) -> None:
    cluster, _ = loaded
    assert accounted(cluster) == books
    said = cluster.deploy().stdout
    assert f"Slurm stays {OLD}, though the site wants {NEW}" in said
    assert f"deploy upgrade {cluster.inventory}" in re.sub(
        r"\S*/(?=inventory.ini)", f"{cluster.directory}/", said
    )
    assert set(installed(cluster).values()) == {OLD}
    # Nor does whoever upgrades packages by hand.
    assert NEW not in cluster.on("node1", "apt-get", "--simulate", "upgrade")


def test_a_database_that_does_not_convert_ends_it_before_anything_changed(
    loaded: tuple[Cluster, list[str]],
) -> None:
    cluster, jobs = loaded
    schema = ("mariadb", "slurm_acct_db", "--skip-column-names", "--execute")
    version = cluster.on("ctl1", *schema, "select version from convert_version_table").strip()
    # Of a Slurm that is older than any that it takes over from.
    cluster.on("ctl1", *schema, "update convert_version_table set version = 1")
    said = upgrade(cluster, expect=1).stderr
    cluster.on("ctl1", *schema, f"update convert_version_table set version = {version}")  # noqa: S608
    assert "the database was not converted in the rehearsal, so nothing was changed" in said
    assert "not begun, and as they were: ctl1,login1,node" in said
    assert set(installed(cluster).values()) == {OLD}
    assert cluster.on("ctl1", "systemctl", "is-active", "slurmctld", "slurmdbd").split() == ["active"] * 2
    running = cluster.on("ctl1", "squeue", "--noheader", "--format", "%i", "--states", "running").split()
    assert set(jobs[: len(_RUNNING)]) <= set(running)


def test_a_canary_that_does_not_start_halts_it(loaded: tuple[Cluster, list[str]]) -> None:
    """Killed before in the midst of the controller, with its daemons down."""
    cluster, jobs = loaded
    cluster.on("node1", "mkdir", "-p", _BROKEN.rpartition("/")[0])
    cluster.on(
        "node1",
        "sh",
        "-c",
        f"printf '[Service]\\nExecStartPre=/bin/false\\n' > {_BROKEN}; systemctl daemon-reload",
    )
    killed_when_slurmctld_is_down(cluster)
    said = upgrade(cluster, expect=1).stderr
    assert "batch-stopped" in said
    assert "node1 stays drained" in said
    assert f"not begun, and as they were: {fold(_NODES[1:])}" in said
    untouched = dict.fromkeys(_NODES[1:], OLD)
    assert installed(cluster) == {"ctl1": NEW, "login1": OLD, "node1": NEW, **untouched}, said
    assert "deploy-upgrade" not in cluster.on("ctl1", "squeue", "--all", "--noheader", "--format", "%j")
    states = cluster.node_states()
    assert states["node1"].startswith(("drain", "drng", "down"))
    # With a minus a job that waits is planned for the node.
    assert {states[name].rstrip("-") for name in untouched} <= {"alloc", "mix", "idle"}
    running = cluster.on("ctl1", "squeue", "--noheader", "--format", "%i", "--states", "running").split()
    assert set(jobs[: len(_RUNNING)]) <= set(running)
    # The plugin of the release that each has: here the new commands submit to the old slurmd.
    assert containers(cluster, "ctl1", *_NODES[1:]) == [*_NODES[1:]]
    cluster.deploy("--limit", ",".join(_NODES[1:]))
    assert containers(cluster, "login1", *_NODES[1:]) == [*_NODES[1:]]


def test_the_first_node_goes_back(loaded: tuple[Cluster, list[str]]) -> None:
    """Repaired, and with the old release, it is in service again; its job goes on."""
    cluster, jobs = loaded
    cluster.on("node1", "sh", "-c", f"rm {_BROKEN}; systemctl daemon-reload")
    assert "only compute nodes" in upgrade(cluster, "--back", "login1", expect=2).stderr
    assert f"node1: Slurm {OLD} again" in upgrade(cluster, "--back", "node1", expect=0).stdout
    assert installed(cluster)["node1"] == OLD
    assert not cluster.node_states()["node1"].startswith(("drain", "drng", "down"))
    assert containers(cluster, "login1", *_NODES) == [*_NODES]
    running = cluster.on("ctl1", "squeue", "--noheader", "--format", "%i", "--states", "running").split()
    assert set(jobs[: len(_RUNNING)]) <= set(running)


def begun(cluster: Cluster) -> subprocess.Popen[bytes]:
    """`deploy upgrade`, which somebody is going to kill; what it says is in a file."""
    with _place(cluster).open("wb") as said:
        return subprocess.Popen(
            [*DEPLOY, "upgrade", str(cluster.inventory), "--no-validate", "--batch", "1"],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )


def said_so_far(cluster: Cluster) -> str:
    return _place(cluster).read_text()


def _place(cluster: Cluster) -> Path:
    """Beside the site's directory, which is deploy's."""
    return cluster.directory.with_suffix(".said")


def killed_at_some_moment(cluster: Cluster, moments: random.Random) -> None:
    """Whatever it is at then; it may also have come to its end."""
    with begun(cluster) as process:
        time.sleep(moments.uniform(0, _LATEST_KILL_SECONDS))
        process.send_signal(signal.SIGKILL)


def killed_when_slurmctld_is_down(cluster: Cluster) -> None:
    """`deploy upgrade`, and the end of it by SIGKILL."""
    with begun(cluster) as process:

        def is_down() -> bool:
            assert process.poll() is None, "it ended before its controller stopped"
            return "inactive" in cluster.on("ctl1", "systemctl", "is-active", "slurmctld", expect=None)

        wait_until("slurmctld is down", is_down, seconds=600)
        process.send_signal(signal.SIGKILL)


def killed_after_the_first_node(cluster: Cluster) -> None:
    """The repaired node is in service again, its job ran on, and the next one is not changed."""
    with begun(cluster) as process:

        def is_back() -> bool:
            assert process.poll() is None, "it ended before its first node was back"
            is_new = installed(cluster)["node1"] == NEW
            return is_new and not cluster.node_states()["node1"].startswith(("drain", "drng", "down"))

        wait_until("node1 is in service again", is_back, seconds=600)
        process.send_signal(signal.SIGKILL)
    assert {installed(cluster)[name] for name in _NODES[1:]} == {OLD}


def drained(cluster: Cluster, second: str) -> dict[str, Any]:
    """What `deploy upgrade --drain` came to, which waits for the job of a node."""
    command = [*DEPLOY, "upgrade", str(cluster.inventory), "--no-validate", "--drain", "--json"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:

        def is_waited_for() -> bool:
            assert process.poll() is None, "it ended before it drained the next node"
            return cluster.node_states()[second].startswith(("drain", "drng"))

        wait_until(f"{second} drains", is_waited_for, seconds=600)
        assert installed(cluster)[second] == OLD
        cluster.as_user(f"touch {second}-0/stop")
        said, _ = process.communicate(timeout=900)
    assert process.returncode == 0
    return dict(json.loads(said))


def test_after_the_repair_it_goes_on_and_no_job_is_lost(
    loaded: tuple[Cluster, list[str]], books: tuple[str, str, str]
) -> None:
    cluster, jobs = loaded
    if _KILLS == 1:
        killed_after_the_first_node(cluster)
        came = drained(cluster, _NODES[1])
        assert came["submitted"] > 0
    else:
        moments = random.Random(_KILLS)  # noqa: S311 - no secret
        for _ in range(_KILLS - 1):
            killed_at_some_moment(cluster, moments)
        came = json.loads(upgrade(cluster, "--json", "--batch", "1", expect=0).stdout)
    assert came["hurt"] == []
    assert came["without_end"] == []
    assert set(installed(cluster).values()) == {NEW}
    assert accounted(cluster) == books
    cluster.on("login1", "systemctl", "stop", "stream")
    cluster.as_user("touch " + " ".join(f"{place}/stop" for _, place in _RUNNING))
    rows = (
        "sacct",
        "--noheader",
        "--allocations",
        "--duplicates",
        "--parsable2",
        "--format",
        "JobID,State,Restarts",
    )
    wanted = [f"{job}|COMPLETED|0" for job in jobs]

    def all_ended() -> bool:
        ids = ",".join(jobs)
        return sorted(cluster.on("ctl1", *rows, "--jobs", ids).split()) == sorted(wanted)

    wait_until("every job ended once, and has its row", all_ended, seconds=900)
    ran = cluster.as_user("cat array.log").split()
    assert sorted(map(int, ran)) == list(range(1, _ARRAY + 1))
    stream = cluster.as_user("cat stream.ids").split()
    assert len(stream) > len(_NODES)

    def stream_ended() -> bool:
        found = cluster.on("ctl1", *rows, "--user", "alice", "--starttime", "now-1days").split()
        known = [row for row in found if row.partition("|")[0] in {*stream}]
        return sorted(known) == sorted(f"{job}|COMPLETED|0" for job in stream)

    wait_until("every submission ended once, and has its row", stream_ended, seconds=300)


def test_then_there_is_nothing_to_do_and_the_way_back_is_refused(loaded: tuple[Cluster, list[str]]) -> None:
    cluster, _ = loaded
    assert "nothing to do" in upgrade(cluster, expect=0).stdout
    assert cluster.plain_states() == dict.fromkeys(_NODES, "idle")
    assert "node1" in cluster.as_user("srun -w node1 hostname")
    for host in ("login1", "ctl1"):
        assert containers(cluster, host, *_NODES) == [*_NODES]
    assert "converged" in cluster.deploy().stdout
    assert containers(cluster, "login1", *_NODES) == [*_NODES]
    said = upgrade(cluster, "-e", f"slurm_packages_version={OLD}", expect=2).stderr
    assert "upgrade-is-downgrade" in said


@pytest.mark.skipif(_KILLS == 1, reason="an upgrade more, with two validations: in make upgrade-long")
def test_in_one_go_it_is_compared_with_what_was_before(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Validation and what users type, before and after, in one report."""
    with booted("proved", tmp_path_factory, "--nodes", "2", "--gpus", "2") as cluster:
        partition = {"name": "batch", "default": True}
        place = cluster.directory / "host_vars/ctl1.yml"
        place.parent.mkdir()
        place.write_text(json.dumps({"slurmctld_partitions": [partition], "slurmctld_slurmd_timeout": 900}))
        (cluster.directory / "user-commands.yml").write_text(_COMMANDS)
        cluster.deploy()
        want_the_new(cluster)
        page = cluster.directory / "upgrade.html"
        words = ("upgrade", str(cluster.inventory), "--try", "--json", "--html", str(page))
        came = json.loads(run(*DEPLOY, *words, seconds=1500).stdout)
        proofs = came["validation"]
        for time_of in ("before", "after"):
            outcomes = {check["check"]: check["outcome"] for check in proofs[time_of]["checks"]}
            assert [name for name, outcome in outcomes.items() if outcome == "failed"] == []
            assert {outcomes[name] for name in ("job", "gpu-binding", "accounting")} == {"passed"}
        assert proofs["commands"] == []
        assert {change["kind"] for change in proofs["changes"]} <= {
            "slower",
            "faster",
            "better",
            "not measured",
        }
        assert "26.05" in page.read_text()
