"""A lab of seven machines: two controllers, the database on two hosts and an arbitrator, three nodes.

The controllers' state is a file system of its own, so that it can be filled and can hang.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.lab.state import LAB, SHARED_STATE, container_name, shared_volume
from tests.cluster.lab_cluster import Cluster, run
from tests.cluster.members_lab import is_synced, put_apart

CONTROLLERS = ("ctl1", "ctl2")
DATABASE, SECOND_DATABASE = "login1", "ctl3"
"""Both have the rows, and the first one's slurmdbd serves; the arbitrator is on the first controller."""
NODES = ("node1", "node2", "node3")
HOSTS = (*CONTROLLERS, DATABASE, SECOND_DATABASE, *NODES)
STATE = f"{SHARED_STATE}/state"
HEALTH_CHECK_SECONDS = 60
"""How often nodes look at themselves, which takes back what Slurm did to one by mistake."""
PARTITION = """
# Several jobs share a processor: the test wants many of them, which do nothing.
slurmctld_partitions:
  - name: main
    default: true
    parameters: {OverSubscribe: "FORCE:100", MaxTime: "1:00:00"}
"""
_STATE_MIB = 768


@contextmanager
def deployed_lab(name: str, place: Path) -> Iterator[Cluster]:
    """The machines, deployed; the lab is removed at the end in any case."""
    made = Cluster(name, place / "site", "trixie")
    volume = shared_volume(name, SHARED_STATE)
    try:
        _make_volume(volume, name, place / "state.ext4")
        made.up("--controllers", "3", "--nodes", str(len(NODES)), "--gpus", "0")
        put_apart(made)
        with (made.directory / "group_vars" / "slurm-master.yml").open("a", encoding="utf-8") as file:
            file.write(f"{PARTITION}slurmctld_health_check_interval: {HEALTH_CHECK_SECONDS}\n")
        made.deploy()
        yield made
    finally:
        thaw(name)
        made.down()


def has_whole_database(cluster: Cluster) -> bool:
    """Whether both hosts of the database and the arbitrator are there, and both have all rows."""
    return all(is_synced(cluster, host) for host in (DATABASE, SECOND_DATABASE))


def state_on_this_machine(lab: str) -> Path:
    """Where the file system of the state is mounted here; podman has it there while a machine runs."""
    said = run("podman", "volume", "inspect", "--format", "{{.Mountpoint}}", shared_volume(lab, SHARED_STATE))
    return Path(said.stdout.strip())


def freeze(lab: str) -> None:
    """Whatever writes to the state hangs from now on, on all hosts, as with storage whose server hangs."""
    run("fsfreeze", "--freeze", str(state_on_this_machine(lab)))


def thaw(lab: str) -> None:
    """Ends that, if it is so."""
    said = run(
        "podman",
        "volume",
        "inspect",
        "--format",
        "{{.Mountpoint}}",
        shared_volume(lab, SHARED_STATE),
        expect=None,
    )
    if place := said.stdout.strip():
        subprocess.run(["fsfreeze", "--unfreeze", place], capture_output=True, check=False)


def init_of(cluster: Cluster, host: str) -> str:
    """The number that the first process of a machine has on this one."""
    said = run("podman", "inspect", "--format", "{{.State.Pid}}", container_name(cluster.name, host))
    return said.stdout.strip()


def _make_volume(volume: str, lab: str, image: Path) -> None:
    image.parent.mkdir(parents=True, exist_ok=True)
    with image.open("wb") as file:
        file.truncate(_STATE_MIB << 20)
    run("mkfs.ext4", "-q", "-F", "-m", "0", str(image))
    options = ("--opt", "type=ext4", "--opt", f"device={image}", "--opt", "o=loop")
    run("podman", "volume", "create", f"--label={LAB}={lab}", *options, volume)
