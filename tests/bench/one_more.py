"""One compute node more: what it costs a small cluster, and a larger one."""

from pathlib import Path

from tests.bench.commands import Finished
from tests.bench.lab import BenchLab, Wish, fresh_lab
from tests.bench.rerun import deploy_cluster


def seconds_to_add_one(name: str, place: Path, wish: Wish) -> float:
    """Deploys a cluster, adds a node to its inventory, and measures the run that takes it in."""
    with fresh_lab(name, place, wish) as lab:
        deploy_cluster(lab)
        return add_one(lab).seconds


def add_one(lab: BenchLab) -> Finished:
    """The run that takes one node more into a deployed cluster; an error where Slurm does not have it."""
    larger = lab.more_nodes(lab.nodes + 1)
    finished = deploy_cluster(larger)
    larger.wait_for(f"node{larger.nodes}")
    return finished
