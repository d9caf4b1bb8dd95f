"""Machines with kernels and disks of their own: a controller with /home by NFS, a login node, two nodes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.lab_cluster import Cluster
from tests.kills.lab import say_of_all, varied
from tests.reliability.lab import PARTITION

CONTROLLER, LOGIN = "ctl1", "login1"
NODES = ("node1", "node2")
HOSTS = (CONTROLLER, LOGIN, *NODES)
TOOLS = ("tmux", "strace", "jq")
"""Packages that nobody needs, so that they can be taken away and be installed again."""
_SLURM = {"AuthInfo": "cred_expire=25", "SchedulerParameters": "sched_interval=10,bf_interval=10"}
"""What ran on a lost node is started again after 25 s and not 120; jobs that wait are looked at sooner."""
_SLURMD_TIMEOUT = ("slurmctld_slurmd_timeout: 30", "slurmctld_slurmd_timeout: 20")
"""slurmctld asks nodes what runs there after seven times that, as a loss of its own power needs."""


@contextmanager
def deployed_lab(name: str, place: Path) -> Iterator[Cluster]:
    """Four machines, deployed; removed at the end in any case."""
    made = Cluster(name, place / "site", "trixie", "uml")
    try:
        made.up("--machines", "uml", "--nodes", str(len(NODES)), "--gpus", "0")
        write_through(made)
        controller = made.directory / "group_vars" / "slurm-master.yml"
        said = controller.read_text(encoding="utf-8") + PARTITION
        assert said.count(_SLURMD_TIMEOUT[0]) == 1
        controller.write_text(said.replace(*_SLURMD_TIMEOUT), encoding="utf-8")
        with (made.directory / "group_vars" / "slurm-node.yml").open("a", encoding="utf-8") as file:
            file.write(f"user_environment_extra_packages: [{', '.join(TOOLS)}]\n")
        vary(made, 0)
        made.deploy()
        yield made
    finally:
        made.down()


def write_through(cluster: Cluster) -> None:
    """Labs have dpkg not wait for the disk, which is for machines whose power is never lost."""
    for host in HOSTS:
        cluster.on(host, "sed", "-i", "/^force-unsafe-io$/d", "/etc/dpkg/dpkg.cfg.d/99mmdebstrap")


def vary(cluster: Cluster, number: int) -> None:
    """Gives a deployment something to do on every host."""
    said = varied(number)
    del said["firewall_admin_networks"]  # their kernel has no nftables
    say_of_all(cluster, said | {"slurmctld_parameters": said["slurmctld_parameters"] | _SLURM})
