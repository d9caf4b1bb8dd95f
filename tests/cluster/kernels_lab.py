"""A lab of machines with kernels of their own, and what tests ask of it.

A host of its own serves /home, so that it can be lost alone.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cluster.conftest import RELEASES
from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, run
from tests.cluster.test_job_programs import SAID, write
from tests.cluster.validated import validated

HOSTS = ("ctl1", "login1", "node1", "node2")
FILES = "node2"
"""The file server: a machine that the lab has made to be a node."""
_MAKE_HOMES = """
set -e
truncate -s 256M /srv/homes
mkfs.ext4 -q -O quota -E quotatype=usrquota:grpquota /srv/homes
echo '/srv/homes /home ext4 loop,usrquota,grpquota 0 2' >>/etc/fstab
systemctl mask --quiet quotaon.service "$(systemd-escape --path --template=quotaon@.service /home)"
systemctl daemon-reload
mount /home
"""
_SERVER_VARIABLES = {
    "users_create_home": True,
    "quotas_filesystems": [
        {
            "path": "/home",
            "each_user": {"space": "40M"},
            "users": [{"name": "alice", "space": "20M", "files": 500}],
            "groups": [{"name": "bob", "space": "10M"}],
        }
    ],
}
_OF_HOSTS = ("reachable", "services", "kernels", "control-groups", "mounts", "file-servers", "quotas")
"""The checks that ask hosts for what the faults change; what jobs are for is asked where nothing is wrong."""


@contextmanager
def kernels_lab(name: str, places: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A controller, a login node, a node with two simulated GPUs, a file server: deployed."""
    options = ("--nodes", "2", "--gpus", "2")
    with booted(name, places, *options, release=RELEASES[0], machines="uml") as made:
        _serve_homes_elsewhere(made)
        made.on(FILES, "sh", "-c", _MAKE_HOMES)
        _set_clock(made, "ctl1")
        made.deploy()
        made.as_user("echo written here >note")
        yield made


def _serve_homes_elsewhere(cluster: Cluster) -> None:
    """What an admin writes who has a file server, and limits on it and on login nodes."""
    inventory = cluster.inventory.read_text()
    for before, after in (
        ("node1\nnode2\n\n", "node1\n\n"),
        ("[slurm-nfs]\nctl1\n", f"[slurm-nfs]\n{FILES}\n"),
        ("[slurm-cluster:children]\n", "[slurm-cluster:children]\nslurm-nfs\n"),
    ):
        assert before in inventory
        inventory = inventory.replace(before, after)
    cluster.inventory.write_text(inventory)
    variables = cluster.directory / "group_vars"
    controller = (variables / "slurm-master.yml").read_text()
    (variables / "slurm-master.yml").write_text(controller.replace("users_create_home: true\n", ""))
    (variables / "slurm-nfs.yml").write_text(json.dumps(_SERVER_VARIABLES))
    write(cluster, SAID)
    (variables / "slurm-login.yml").write_text("login_limits_memory: 200M\nlogin_limits_processes: 60\n")


def _set_clock(cluster: Cluster, host: str) -> None:
    """On a busy machine a kernel's clock is seconds behind when it has booted, and stays so.

    The others will have its time by NTP.
    """
    ahead = min(_ahead(cluster, host) for _ in range(3))[1]
    cluster.on(host, "python3", "-c", f"import time; time.clock_settime(0, time.time() + {ahead})")


def _ahead(cluster: Cluster, host: str) -> tuple[float, float]:
    """How long it took to ask a machine for its time, and by how much ours is ahead of that."""
    began = time.time()
    told = float(cluster.on(host, "date", "+%s.%N"))
    ended = time.time()
    return ended - began, (began + ended) / 2 - told


def on_lab(cluster: Cluster, verb: str, *words: str) -> str:
    return run(*DEPLOY, "lab", verb, "--name", cluster.name, *words).stdout


def asked(cluster: Cluster, *more: str) -> dict[str, Any]:
    """What the checks of hosts say, and more ones; something is wrong."""
    only = (word for check in (*_OF_HOSTS, *more) for word in ("--only", check))
    return validated(cluster, *only, expect=1)


def failed(found: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """By check, what it found wrong."""
    return {
        name: [verdict for verdict in check["verdicts"] if verdict["outcome"] == "failed"]
        for name, check in found.items()
        if check["outcome"] == "failed"
    }


def boot_of(cluster: Cluster, host: str) -> str:
    """The number that the kernel of a machine has from its boot; empty while nobody answers there."""
    return cluster.on(host, "cat", "/proc/sys/kernel/random/boot_id", expect=None).strip()
