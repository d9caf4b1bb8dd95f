"""Containers: which hosts offer them, and what must not run in them."""

from collections.abc import Iterator

from deploy.errors import Finding
from deploy.site.inventory import CONTAINER, NODE, Site
from deploy.site.origin import host_origin
from deploy.site.schema import options
from deploy.site.slurm_parameters import slurm_parameter

_SCOPE = "pyxis_container_scope"


def check_containers(site: Site) -> Iterator[Finding]:
    """All of it."""
    yield from _nodes_without(site)
    yield from _task_prolog(site)


def _task_prolog(site: Site) -> Iterator[Finding]:
    """What Slurm runs before each task it runs in the task's container."""
    for master in site.controllers if site.containers else ():
        if slurm_parameter(master, "TaskProlog"):
            yield Finding(
                master.where("slurmctld_parameters"),
                "task-prolog-in-containers",
                "TaskProlog is set beside containers: Slurm runs it in a task's container, where it is "
                "missing",
                "name the program in slurmctld_task_prolog: it runs on the node, before the container begins",
            )
            return


def _nodes_without(site: Site) -> Iterator[Finding]:
    """Compute nodes without Enroot, with which the plugin cleans up after every job."""
    offering = {host.name for host in site.containers}
    without = [node.name for node in site.nodes if node.name not in offering]
    if not offering or not without:
        return
    scopes = {host.variables.get(_SCOPE, options()[_SCOPE].spec["default"]) for host in site.controllers}
    if "job" in scopes:
        yield Finding(
            host_origin(site.inventory, without[0]),
            "containers-on-some-nodes",
            f"{', '.join(without[:5])}{' …' if len(without) > 5 else ''} not in [{CONTAINER}]: "  # noqa: PLR2004
            "jobs end with a search for their containers, which fails there and drains the node",
            f"name [{NODE}] below [{CONTAINER}:children], or set {_SCOPE}: global",
        )
