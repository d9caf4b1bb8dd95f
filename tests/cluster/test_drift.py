"""Hosts that are changed behind deploy's back: every change is named, and put right by the next run.

DEPLOY_DRIFT_ROUNDS is the number of rounds; each makes about thirty changes, which DEPLOY_DRIFT_SEED decides.
"""

import fnmatch
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.cluster.lab_cluster import Cluster

pytestmark = pytest.mark.one_release

ROUNDS = int(os.environ.get("DEPLOY_DRIFT_ROUNDS", "1"))
SEED = int(os.environ.get("DEPLOY_DRIFT_SEED", "1"))


@dataclass(frozen=True)
class Mutation:
    """Something done to a host, and how what `deploy status` says of it begins, as a pattern."""

    host: str
    command: str
    expected: str


FILES = {
    "ctl1": (
        *(
            "/etc/slurm/slurm.conf",
            "/etc/slurm/gres.conf",
            "/etc/slurm/cgroup.conf",
            "/etc/slurm/slurmdbd.conf",
        ),
        *("/etc/munge/munge.key", "/etc/mysql/mariadb.conf.d/60-deploy.cnf", "/etc/chrony/chrony.conf"),
    ),
    "login1": ("/etc/munge/munge.key", "/etc/hosts", "/etc/chrony/chrony.conf"),
    "node1": ("/etc/default/slurmd", "/etc/munge/munge.key", "/etc/default/chrony"),
    "node2": ("/etc/default/slurmd", "/etc/hosts", "/etc/chrony/chrony.conf"),
}
FILE_MUTATIONS = {
    "echo '# drifted' >> {}": "{} differs",
    "rm {}": "{} is missing",
    "chmod 0606 {}": "{} has mode 0606",
    "chown nobody {}": "{} has owner nobody",
    "chgrp nogroup {}": "{} has group nogroup",
}
SERVICES = {"ctl1": ("slurmctld", "chrony"), "login1": ("munge",), "node1": ("slurmd",), "node2": ("munge",)}
SERVICE_MUTATIONS = {
    "systemctl stop {}": "is stopped",
    "systemctl disable {}": "is disabled at boot",
    "systemctl mask --now {}": "is masked at boot",
}


def _mutations(chosen: random.Random, release: str) -> Iterator[Mutation]:
    """One for every file, service, package and account, of a kind that chance decides; Slurm's own first."""
    yield Mutation("ctl1", "sacctmgr -i delete user alice", "accounts, users and their limits ")
    for host, paths in FILES.items():
        for path in paths:
            # podman binds /etc/hosts into its machines, where it cannot be removed.
            fitting = [each for each in FILE_MUTATIONS if path != "/etc/hosts" or not each.startswith("rm")]
            command = chosen.choice(fitting)
            yield Mutation(host, command.format(path), FILE_MUTATIONS[command].format(path))
    for host, names in SERVICES.items():
        for name in names:
            command = chosen.choice(list(SERVICE_MUTATIONS))
            unit = f"{name}.service" if name in {"munge", "chrony"} else name
            yield Mutation(host, command.format(name), f"service {unit} *{SERVICE_MUTATIONS[command]}")
    yield Mutation("node1", "usermod --shell /bin/false bob", "user bob has shell /bin/false")
    yield Mutation("login1", "groupdel --force alice", "group alice is missing")
    yield Mutation("node2", "dpkg --force-depends --remove python3-apt", "package python3-apt is missing")
    if release == "trixie":
        yield Mutation("login1", "systemctl stop sackd", "service sackd is stopped")


@pytest.mark.parametrize("number", range(ROUNDS))
def test_every_change_is_named_and_put_right(cluster: Cluster, number: int) -> None:
    mutations = list(_mutations(random.Random(SEED + number), cluster.release))  # noqa: S311 - no secret
    for mutation in mutations:
        cluster.on(mutation.host, "sh", "-c", mutation.command)
    hosts = cluster.status(expect=1)
    missed = [
        mutation
        for mutation in mutations
        if not fnmatch.filter(hosts[mutation.host]["record"]["drift"], f"{mutation.expected}*")
    ]
    assert missed == []
    cluster.deploy("--yes")
    assert _drift(cluster) == {}
    cluster.deploy("--full", "--check")
    assert not any(host["changed"] for host in cluster.report()["hosts"].values())


def test_a_package_that_was_taken_back_is_brought_forward(cluster: Cluster) -> None:
    """An older chrony cannot be fetched here, so the one that is there is told to be older."""
    version = cluster.on("node1", "dpkg-query", "--show", "--showformat", "${Version}", "chrony")
    cluster.on(
        "node1",
        "sh",
        "-c",
        "sed -i '/^Package: chrony$/,/^$/s/^Version: .*/Version: 1.0/' /var/lib/dpkg/status",
    )
    assert f"package chrony is 1.0, was {version}" in cluster.status(expect=1)["node1"]["record"]["drift"]
    cluster.deploy()
    assert cluster.on("node1", "dpkg-query", "--show", "--showformat", "${Version}", "chrony") == version


def test_what_nobody_touched_has_not_drifted(cluster: Cluster) -> None:
    for _ in range(max(ROUNDS, 3)):
        cluster.as_user("srun -N2 true; sbatch --wrap true")
        cluster.deploy()
        report = cluster.report()
        assert all(host["verified"] and not host["ok"] for host in report["hosts"].values())
        assert _drift(cluster) == {}


def _drift(cluster: Cluster) -> dict[str, list[str]]:
    hosts = cluster.status(expect=None)
    return {name: host["record"]["drift"] for name, host in hosts.items() if host["record"]["drift"]}
