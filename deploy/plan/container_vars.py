"""What containers need of the whole site: the plugin's line, and where its package travels."""

from typing import Any

from deploy.plan.slurm_source import exchange_directory
from deploy.plan.storage_vars import TASK_PROLOG
from deploy.site.inventory import Host, Site

Variables = dict[str, Any]

PLUGIN_PACKAGE = "slurm-pyxis"
_PLUGIN = "spank_pyxis.so"
_TASK_PROLOG = "spank_task_prolog.so"
"""Both are in the package; the order is that of their lines."""


def exchange(site: Site) -> Variables:
    """Where the plugin's package lies between the build host and the others."""
    return {"pyxis_exchange_directory": str(exchange_directory(site))}


def plugin_lines(site: Site, host: Host, *, is_limited: bool) -> Variables:
    """Lines of plugstack.conf for a controller: those of the inventory, and the plugin's.

    A run that leaves hosts out keeps the plugin in force, but does not bring it there: where the plugin is
    missing no job can be submitted or started.
    """
    if not site.containers or host not in site.controllers:
        return {}
    program = host.variables.get("slurmctld_task_prolog") or TASK_PROLOG
    lines = [f"required {_TASK_PROLOG} {program}", plugin_line(host)]
    return {
        "slurmctld_task_prolog": "",
        "slurmctld_plugstack": [*host.variables.get("slurmctld_plugstack", []), *lines],
        "slurmctld_plugstack_not_added": lines if is_limited else [],
    }


def task_prolog(site: Site) -> str:
    """What Slurm runs before each task; nothing on a site with containers, where a plugin runs it.

    The task is in its container by then, where the program is missing; Slurm 24.11.0 to 24.11.6 need their
    own libraries there, too: no container would start (https://github.com/NVIDIA/pyxis/issues/163). The
    plugin runs it on the node before the container begins.
    """
    return "" if site.containers else TASK_PROLOG


def plugin_line(controller: Host) -> str:
    """How plugstack.conf names the plugin; Slurm looks for it beside its own."""
    chosen = {
        "runtime_path": controller.value("pyxis_runtime_directory"),
        "container_scope": controller.value("pyxis_container_scope"),
        **controller.value("pyxis_options"),
    }
    words = (f"{key}={_word(setting)}" for key, setting in chosen.items())
    return " ".join(("required", _PLUGIN, *words))


def _word(setting: object) -> str:
    return str(setting).lower() if isinstance(setting, bool) else str(setting)
