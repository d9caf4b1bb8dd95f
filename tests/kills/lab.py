"""A lab with two controllers, on which every kind of run is killed."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cluster.lab_cluster import Cluster

HOSTS = ("ctl1", "ctl2", "login1", "node1")


@contextmanager
def new_lab(name: str, place: Path) -> Iterator[Cluster]:
    """Four machines, nothing deployed yet; removed at the end in any case."""
    made = Cluster(name, place, "trixie")
    try:
        made.up("--controllers", "2", "--nodes", "1", "--gpus", "0")
        vary(made, 0)
        yield made
    finally:
        made.down()


def vary(cluster: Cluster, number: int) -> None:
    """Has the site say something else on every host: sshd, firewall, environment, motd, slurm.conf."""
    say_of_all(cluster, varied(number))


def varied(number: int) -> dict[str, Any]:
    """What it says then."""
    return {
        "firewall_admin_networks": ["10.0.0.0/8", f"192.0.2.{number % 250}/32"],
        "motd_text": [f"Round {number}."],
        "ssh_server_parameters": {"MaxStartups": f"{100 + number}:30:300"},
        "user_environment_variables": [{"name": "KILLS_ROUND", "value": str(number)}],
        "slurmctld_parameters": {"MaxArraySize": 2000 + number},
    }


def say_of_all(cluster: Cluster, said: Mapping[str, Any]) -> None:
    """Writes variables of all hosts into the site."""
    (cluster.directory / "group_vars" / "slurm-cluster.yml").write_text(json.dumps(said, indent=1) + "\n")
