"""What the programs before and after jobs need of the whole site: who has them, and what Slurm is told."""

from typing import Any

from deploy.plan.access_vars import admin_groups
from deploy.site.energy import energy_sources
from deploy.site.inventory import Host, Site
from deploy.site.job_programs import EPILOG, PROLOG, has_epilog, has_prolog, is_declared

Variables = dict[str, Any]

_RUNNER = "/usr/local/lib/job_programs"
"""Where the role job_programs has what Slurm starts, as ``prolog`` and ``epilog``."""
_GPU_DIRECTORY = "gpu_exporter_job_directory"


def job_program_nodes(site: Site) -> tuple[Host, ...]:
    """All compute nodes, once the site says something for one: Slurm runs the same programs on all.

    It drains a node that does not have them.
    """
    return tuple(site.nodes) if any(map(is_declared, site.nodes)) else ()


def slurm_programs(site: Site) -> Variables:
    """Slurm's Prolog and Epilog; nothing where no node has a program for it."""
    return {
        "slurmctld_prolog": f"{_RUNNER}/{PROLOG}" if any(map(has_prolog, site.nodes)) else "",
        "slurmctld_epilog": f"{_RUNNER}/{EPILOG}" if any(map(has_epilog, site.nodes)) else "",
    }


def not_brought(site: Site, host: Host, *, is_limited: bool) -> Variables:
    """A run that leaves nodes out keeps what is in force, but brings nothing that they might lack."""
    if host not in site.controllers:
        return {}
    told = {"Prolog": "slurmctld_prolog", "Epilog": "slurmctld_epilog"}
    programs = slurm_programs(site)
    lines = [f"{name}={programs[variable]}" for name, variable in told.items() if programs[variable]]
    if sources := energy_sources(site):
        lines.append(f"AcctGatherEnergyType={','.join(f'acct_gather_energy/{name}' for name in sources)}")
    return {"slurmctld_programs_not_added": lines if is_limited else []}


def node_programs(node: Host) -> Variables:
    """The variables of one compute node."""
    users = [*node.value("job_ssh_admin_users"), node.variables.get("ansible_user")]
    wired: Variables = {
        "job_programs_kept_groups": admin_groups(node),
        "job_programs_kept_users": [user for user in users if isinstance(user, str) and "{{" not in user],
    }
    if own := node.variables.get(_GPU_DIRECTORY):
        wired["job_programs_gpu_directory"] = own
    elif node.value("job_programs_gpu_files"):
        wired[_GPU_DIRECTORY] = node.value("job_programs_gpu_directory")
    return wired
