"""The text of a new lab's inventory and group_vars: every exception that the lab needs is in here.

Nothing in the roles knows of the lab; what containers cannot do is said to them with ordinary
variables, so a lab's directory is also an example of a site.
"""

from collections.abc import Mapping

from deploy.lab.addresses import controller_number, node_number
from deploy.lab.recipe import ADMIN
from deploy.lab.state import SHARED_STATE

INVENTORY = """\
# A lab of {machines} on this machine, made by: deploy lab up
# This file is yours now: the lab never rewrites it.

[all]
{definitions}

[slurm-master]
{controllers}

[slurm-login]
login1

[slurm-node]
{nodes}

{accounted}{served}# {watched}
[slurm-metric]
{metric}
# {cached}
[slurm-cache]
{cache}
[slurm-cluster:children]
slurm-master
slurm-login
slurm-node
slurm-metric

[all:vars]
ansible_user={admin}
ansible_become=True
ansible_python_interpreter=/usr/bin/python3
# Keys and host keys lie beside this file, so the directory can be moved.
ansible_ssh_private_key_file={identity}
ansible_ssh_common_args={ssh_arguments}
"""

MARK = "# Lab: "
"""How a comment begins on what no site needs; each lab has some in its variables."""

IDENTITY = "{{ inventory_dir }}/.lab/id_ed25519"
"""The key that opens the machines of a lab, and no others."""

SSH_ARGUMENTS = (
    """-o 'UserKnownHostsFile="{{ inventory_dir }}/.lab/known_hosts"' -o StrictHostKeyChecking=yes"""
    " -o IdentitiesOnly=yes -o KexAlgorithms=curve25519-sha256"
)

ALL_SHARING = """\
# Lab: the machines share one kernel and so one clock, which chrony must not set.
time_sync_options: "-F 1 -x"
# Lab: /home is one volume that all machines share; only the controller makes homes in it.
users_create_home: false

"""

ALL_OWN_KERNEL = """\
# Only the controller, which serves /home, makes homes in it.
users_create_home: false

"""

PEOPLE = """\
# Two people to try things as.
users_accounts:
  - name: alice
    uid: 2001
  - name: bob
    uid: 2002
slurm_accounts_accounts:
  - name: research
    description: Research groups
slurm_accounts_users:
  - name: alice
    accounts: [research]
  - name: bob
    accounts: [research]
"""

ONE_CONTROLLER = """\
# Homes are made here, once.
users_create_home: true
"""

CONTROLLER = """\
# Lab: a killed machine is noticed within seconds instead of minutes.
slurmctld_slurmd_timeout: 30
"""

SEVERAL_CONTROLLERS = f"""\
# Lab: /home is one volume that all machines share, so that one machine makes homes.
users_create_home: "{{{{ inventory_hostname == 'ctl1' }}}}"
# Lab: a directory that all machines share, where others have storage that outlives a controller.
slurmctld_state_save_location: {SHARED_STATE}/state
# Lab: another controller takes over after seconds instead of minutes.
slurmctld_timeout: 10
"""

CONTROLLER_OWN_KERNEL = """\
# Lab: the database has a machine with little memory, of which this kernel maps less than MariaDB reserves.
mariadb_innodb_buffer_pool_size: 128M
"""

CONTROLLER_OWN_KERNEL_TRIXIE = """\
mariadb_parameters:
  innodb_buffer_pool_size_max: 1G
"""

CONTROLLER_CGROUP_V1 = """\
# Lab: this host runs containers on cgroup v1, where Slurm cannot find the version out by itself.
slurmctld_cgroup_parameters:
  CgroupPlugin: cgroup/v1
"""

CONTROLLER_CGROUP_V1_BOOKWORM = """\
  # Lab: the controllers are mounted already and a container cannot mount them again (Slurm 22.05).
  CgroupAutomount: "no"
"""

NODE = """\
# Lab: its GPUs are simulated, and its kernel is the one of this machine. Without a driver there is nothing
# that an exporter of GPUs could ask, and none is installed.
nvidia_driver_source: none
# Lab: a machine has one file system.
scratch_may_fill_root: true
"""

NODE_SHARING = """\
slurmd_hardware:
  # Lab: a container sees the memory of its whole host; several nodes must not all promise it.
  memory_mb: 1024
"""

NODE_OWN_KERNEL = """\
slurmd_hardware:
"""

NODE_GPUS = """\
  # Lab: the devices are simulated; no driver is there to count them.
  gpus:
    - type: a100
      count: {gpus}
"""

LOGIN = """\
# Lab: a container sees the memory of its whole host, of which a part is too much.
login_limits_memory: 512M
"""


THRESHOLDS = """\
# What deploy validate holds measurements against. Lab: machines share their CPUs with all that runs here.
slow_node_ratio: 8
regression_percent: 1000
# Lab: nobody sets its clock, which is this machine's.
alerts_that_may_fire: [ClockNotSynchronized]
"""

METRIC = """\
# Lab: Grafana's package repository is not reached from everywhere.
grafana_source: none
# Lab: nobody but this machine reaches it, so that pages without accounts may be opened from here.
prometheus_listen_address: 0.0.0.0
alertmanager_listen_address: 0.0.0.0
"""

_WATCHED, _NOT_WATCHED = (
    "Prometheus and Alertmanager.",
    "Nobody watches this lab: nothing of the monitoring is installed. Put ctl1 below to have it.",
)


_CACHED, _NOT_CACHED = (
    "Keeps the packages that the others fetch through it.",
    "Every machine fetches its packages itself. Put ctl1 below to have it fetch each for all, once.",
)


_ACCOUNTED = """\
# Has slurmdbd and its database, which a controller needs that takes over from another.
[slurm-database]
login1

"""

_SERVED = """\
# Serves /home to the others, by NFS.
[slurm-nfs]
ctl1

"""


def host_line(host: str, address: str) -> str:
    """How a machine is defined in the inventory."""
    return f"{host} ansible_host={address}"


def inventory(
    addresses: Mapping[str, str],
    *,
    monitoring: bool = False,
    package_cache: bool = False,
    own_kernel: bool = False,
) -> str:
    """The first inventory of a lab: host name -> address; ``ctl1`` may have more to do."""
    return INVENTORY.format(
        machines="machines with kernels of their own" if own_kernel else "containers",
        accounted=_ACCOUNTED if sum(controller_number(host) > 0 for host in addresses) > 1 else "",
        served=_SERVED if own_kernel else "",
        cached=_CACHED if package_cache else _NOT_CACHED,
        cache="ctl1\n" if package_cache else "",
        watched=_WATCHED if monitoring else _NOT_WATCHED,
        metric="ctl1\n" if monitoring else "",
        definitions="\n".join(host_line(host, address) for host, address in addresses.items()),
        controllers="\n".join(host for host in addresses if controller_number(host)),
        nodes="\n".join(host for host in addresses if node_number(host)),
        admin=ADMIN,
        identity=IDENTITY,
        ssh_arguments=SSH_ARGUMENTS,
    )


def group_vars(
    *, release: str, gpus: int, cgroup_v1: bool, own_kernel: bool = False, controllers: int = 1
) -> dict[str, str]:
    """File name -> text of the lab's group_vars.

    ``cgroup_v1`` is about this machine, whose control groups are those of machines without an ``own_kernel``.
    """
    if own_kernel:
        return _own_kernel_vars(release, gpus)
    controller = (SEVERAL_CONTROLLERS if controllers > 1 else ONE_CONTROLLER) + CONTROLLER
    if cgroup_v1:
        controller += CONTROLLER_CGROUP_V1
        if release == "bookworm":
            controller += CONTROLLER_CGROUP_V1_BOOKWORM
    return {
        "all.yml": ALL_SHARING + PEOPLE,
        "slurm-master.yml": controller,
        "slurm-login.yml": LOGIN,
        "slurm-metric.yml": METRIC,
        "slurm-node.yml": NODE + NODE_SHARING + (NODE_GPUS.format(gpus=gpus) if gpus else ""),
    }


def _own_kernel_vars(release: str, gpus: int) -> dict[str, str]:
    database = CONTROLLER_OWN_KERNEL + (CONTROLLER_OWN_KERNEL_TRIXIE if release != "bookworm" else "")
    return {
        "all.yml": ALL_OWN_KERNEL + PEOPLE,
        "slurm-master.yml": ONE_CONTROLLER + CONTROLLER + database,
        "slurm-metric.yml": METRIC,
        "slurm-node.yml": NODE + (NODE_OWN_KERNEL + NODE_GPUS.format(gpus=gpus) if gpus else ""),
    }
