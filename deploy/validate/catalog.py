"""All checks, in the order in which one would look for a fault."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from deploy.run.message import clean, one_line
from deploy.validate.answers import PORTAL
from deploy.validate.checks import (
    burn_in,
    hosts,
    jobs,
    monitoring,
    performance,
    portal,
    slurm,
    surroundings,
    system,
)
from deploy.validate.context import Context
from deploy.validate.result import Judged, Result

SLOW = frozenset({"limit", "nccl", "nvbandwidth", "dcgm", "training"})
"""Kinds of jobs that take more than a minute."""
LOAD = "burn-in"
"""The kind that runs for as long as one says, when one says it."""
ALONE = frozenset({"probes", "memory", "gpus", "ssh", "containers"})
"""Kinds of jobs by which a node shows what it is, whatever the others are, within a minute."""


@dataclass(frozen=True)
class Check:
    """One check: its name, what it proves, and the kinds of jobs that it looks at.

    ``kinds`` are ``probes`` (one on every node, which all others need, too), ``array``, ``together``,
    ``memory``, ``gpus``, ``ssh``, ``mpi``, ``containers``, ``portal``; SLOW and LOAD are further ones.
    ``of_a_host``: it says of one host what it is, with no other asked but a controller; a drained node can
    pass it.
    """

    name: str
    proves: str
    judge: Callable[[Context], Iterator[Result]]
    kinds: tuple[str, ...] = ()
    of_a_host: bool = False


CHECKS: tuple[Check, ...] = (
    Check("reachable", "every host answers over ssh, with sudo and Python", hosts.reachable, of_a_host=True),
    Check("services", "the daemons of every host run", hosts.services, of_a_host=True),
    Check("clock", "the clocks agree", hosts.clock, of_a_host=True),
    Check("names", "every host knows the others' addresses by name", hosts.names, of_a_host=True),
    Check("ways", "Slurm's daemons can be reached from where that is needed", hosts.ways, of_a_host=True),
    Check(
        "packets",
        "packets between hosts of Slurm arrive, soon and in one piece",
        surroundings.packets,
        of_a_host=True,
    ),
    Check(
        "munge",
        "what one host signs, by munge or Slurm, every other can decode",
        hosts.credentials,
        of_a_host=True,
    ),
    Check("mounts", "shared file systems are mounted", hosts.mounts, of_a_host=True),
    Check(
        "file-servers",
        "file servers answer, and on those of the site root of a client is nobody",
        system.file_servers,
    ),
    Check("quotas", "limits of space and files are in force", system.quotas, of_a_host=True),
    Check("space", "users can write to /tmp, /var and their homes", hosts.space, of_a_host=True),
    Check(
        "shared-directories",
        "directories for all take everybody's files, and keep each its owner's",
        surroundings.shared_directories,
        of_a_host=True,
    ),
    Check("hardware", "no node has less than its contract", hosts.hardware, of_a_host=True),
    Check(
        "kernels",
        "nodes of one release run one kernel, the newest that is installed",
        system.kernels,
    ),
    Check(
        "control-groups",
        "every node has the control groups that keep jobs in their limits",
        system.control_groups,
        of_a_host=True,
    ),
    Check("identity", "every host has its own name and address", surroundings.identity, of_a_host=True),
    Check("accounts", "users and groups are the same on every host", surroundings.accounts, of_a_host=True),
    Check(
        "login-shell", "a user's login shell works on every host", surroundings.login_shell, of_a_host=True
    ),
    Check(
        "admin-logins",
        "admins log in on a compute node without a job there",
        hosts.admin_logins,
        of_a_host=True,
    ),
    Check("controllers", "every slurmctld answers", slurm.controllers),
    Check("standby", "each of several controllers reaches the others, to take over", slurm.standby),
    Check("accounting-daemon", "slurmdbd and its database answer", slurm.accounting_daemon),
    Check(
        "configuration", "every host of Slurm has the controller's files", slurm.configuration, of_a_host=True
    ),
    Check("plugins", "what plugstack.conf loads is on every host of Slurm", slurm.plugins, of_a_host=True),
    Check(
        "nodes", "Slurm has every node with its CPUs, memory and typed GPUs", slurm.registered, of_a_host=True
    ),
    Check("energy", "Slurm measures the power of every node", slurm.energy, of_a_host=True),
    Check("node-state", "every node can take jobs", slurm.usable),
    Check("partitions", "partitions have their nodes, limits and permissions", slurm.partitions),
    Check("qos", "the database has every QOS", slurm.qos),
    Check("associations", "users may charge their accounts", slurm.associations),
    Check("job", "a user's job runs on every node", jobs.on_every_node, kinds=("probes",)),
    Check("job-on-all", "one job runs on all nodes at once", jobs.on_all_nodes, kinds=("together",)),
    Check("array", "the tasks of an array all run", jobs.array, kinds=("array",)),
    Check(
        "shared-home",
        "what is written in a home on one host is there on all",
        jobs.shared_home,
        kinds=("probes",),
    ),
    Check(
        "private-tmp",
        "what a job writes to $TMPDIR and /tmp is gone with it",
        jobs.private_directories,
        kinds=("probes",),
    ),
    Check("cpu-binding", "a job has the CPUs that it asked for", jobs.cpu_binding, kinds=("probes",)),
    Check("memory-limit", "a job that takes too much memory is ended", jobs.memory_limit, kinds=("memory",)),
    Check("time-limit", "a job that stays too long is ended", jobs.time_limit, kinds=("limit",)),
    Check(
        "gpu-binding",
        "a job may open the GPUs that it asked for, and no others",
        jobs.gpu_binding,
        kinds=("gpus",),
    ),
    Check(
        "accounting", "every job has its row, complete and right", jobs.accounting, kinds=("probes", "gpus")
    ),
    Check("speed", "a node works as fast as those of its type", hosts.speed, kinds=("probes",)),
    Check("ssh-gate", "users log in on a node only with a job there", jobs.ssh_gate, kinds=("ssh",)),
    Check("containers", "a job with an image sees the image", jobs.containers, kinds=("containers",)),
    Check("mpi", "an MPI program has all its ranks", jobs.mpi, kinds=("mpi",)),
    Check("nccl", "NCCL's all-reduce has all its ranks and right results", performance.nccl, kinds=("nccl",)),
    Check(
        "nccl-bandwidth",
        "NCCL's all-reduce is as fast as it should be on these GPUs and this fabric",
        performance.nccl_bandwidth,
        kinds=("nccl",),
    ),
    Check(
        "nvbandwidth",
        "every GPU copies as fast as those of its type",
        performance.nvbandwidth,
        kinds=("nvbandwidth",),
    ),
    Check("dcgm", "DCGM's diagnostics of every GPU pass", performance.dcgm, kinds=("dcgm",)),
    Check(
        "training",
        "PyTorch trains on every node and over all of them",
        performance.training,
        kinds=("training",),
    ),
    Check(
        "burn-in",
        "under load all results are right, no hardware reports errors, no node is slower than its like",
        burn_in.burn_in,
        kinds=(LOAD,),
    ),
    Check(
        "portal", "the portal starts a server, which computes, and ends it", portal.portal, kinds=(PORTAL,)
    ),
    Check("nothing-left", "no process of a job outlives it", jobs.nothing_left, kinds=("probes",)),
    Check("prometheus", "Prometheus answers and took its configuration", monitoring.prometheus),
    Check("targets", "Prometheus asks all that it should, and all answer", monitoring.targets),
    Check("alerts", "no alert fires", monitoring.alerts),
    Check("alertmanager", "Alertmanager answers", monitoring.alertmanager),
    Check("grafana", "Grafana answers and reaches Prometheus", monitoring.grafana),
    Check("portals", "login nodes' sshd and the monitoring's pages answer", monitoring.portals),
)


def ordinary(checks: Collection[Check]) -> tuple[Check, ...]:
    """The checks that run without being asked for."""
    return tuple(check for check in checks if LOAD not in check.kinds)


def alone(*, is_loaded: bool) -> tuple[Check, ...]:
    """The checks of jobs on one node; with the load of a burn-in, if that is wanted."""
    kinds = ALONE | ({LOAD} if is_loaded else set())
    return tuple(check for check in CHECKS if check.kinds and kinds.issuperset(check.kinds))


def chosen(only: Collection[str], skip: Collection[str]) -> tuple[Check, ...]:
    """The checks of ``only`` (all without it) but for those of ``skip``."""
    return tuple(check for check in CHECKS if (not only or check.name in only) and check.name not in skip)


def judged(context: Context, checks: Collection[Check]) -> tuple[Judged, ...]:
    """The results of checks on a context."""
    return tuple(
        Judged(check.name, check.proves, tuple(map(_clean, check.judge(context)))) for check in checks
    )


def _clean(result: Result) -> Result:
    """What a host said may hold anything, and goes to a terminal, into XML and on a page."""
    return replace(result, message=one_line(result.message), hint=clean(result.hint))
