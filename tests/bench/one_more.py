"""One compute node more: what it costs a small cluster, and a larger one."""

import time
from pathlib import Path

from tests.bench.commands import run
from tests.bench.lab import CONTROLLER, DEPLOY, Wish, fresh_lab
from tests.bench.rerun import deploy_cluster


def seconds_to_add_one(name: str, place: Path, wish: Wish) -> float:
    """Deploys a cluster, adds a node to its inventory, and measures the run that takes it in."""
    new = f"node{wish.nodes + 1}"
    is_idle = f"until sinfo -hN -n {new} -o %t | grep -qx idle; do sleep 0.2; done"
    with fresh_lab(name, place, wish) as lab:
        deploy_cluster(lab)
        more = ("--nodes", str(wish.nodes + 1), "--write-inventory")
        run([*DEPLOY, "lab", "up", "--name", name, "--dir", str(lab.site), *more])
        started = time.monotonic()
        deploy_cluster(lab)
        seconds = time.monotonic() - started
        lab.on(CONTROLLER, f"timeout 30 sh -c '{is_idle}'")
        return seconds
