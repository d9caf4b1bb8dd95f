"""What the roles for software and node health must know of the whole site."""

from collections.abc import Mapping
from typing import Any

from deploy.site.inventory import MASTER, NODE, Host, Site
from deploy.site.schema import default_of

Variables = dict[str, Any]

BUILD_TOOLS = (
    *("build-essential", "gfortran", "make", "cmake", "ninja-build", "meson", "autoconf", "automake"),
    *("libtool", "pkg-config", "bison", "flex", "gdb", "git", "python3-dev"),
)
"""What people compile with, by names that all supported releases have."""
RUN_TIME = ("libgfortran5", "libgomp1")
"""What programs that were compiled with those need on compute nodes."""
HEALTH_CHECK_PROGRAM = "/usr/local/sbin/node_health"
"""Where the role node_health puts its program."""


def software_variables(site: Site, host: Host, hardware: Mapping[str, Any]) -> Variables:
    """The variables of one host; ``hardware`` is its contract where it is a compute node."""
    wired: Variables = {
        "environment_modules_packages": [host.value("environment_modules_implementation")],
        "user_environment_packages": _packages_of_people(site, host),
        "environment_modules_trees": module_trees(host),
    }
    if host.value("ml_stack_environments"):
        builds = host.name == site.logins[0].name
        wired["ml_stack_builds"] = builds
        wired |= {} if builds else {"ml_stack_packages": []}
    if host in site.logins:
        wired |= _of_login(site, host)
    elif NODE in host.groups and host.value("user_environment_build_tools"):
        wired["user_environment_build_packages"] = list(RUN_TIME)
    if NODE in host.groups:
        wired["node_health_contract"] = hardware
        finds = any(master.value("slurmctld_gres_autodetect") == "nvml" for master in site.controllers)
        wired["slurmd_nvml_plugin"] = default_of("mig_slurm_plugin") if finds and hardware.get("gpus") else ""
        wired["openmpi_slurm_daemons"] = ["slurmd"]
    if MASTER in host.groups:
        wired["slurmctld_health_check_program"] = HEALTH_CHECK_PROGRAM
    return wired


def module_trees(host: Host) -> list[str]:
    """Where roles and their tools put module files."""
    trees = [f"{host.value('ml_stack_directory')}/modulefiles"] if host.value("ml_stack_environments") else []
    software = host.value("software_tree_directory")
    if software and host.value("software_tree_easybuild_version"):
        trees.append(f"{software}/easybuild/modules/all")
    if software and host.value("software_tree_spack_version"):
        trees.append(f"{software}/spack/modules")
    return trees


def _of_login(site: Site, host: Host) -> Variables:
    wired: Variables = {
        "software_tree_makes": host == site.logins[0],
        "software_tree_modules_tool": host.value("environment_modules_implementation"),
    }
    if host.value("user_environment_build_tools"):
        wired["user_environment_build_packages"] = list(BUILD_TOOLS)
    if not host.value("seff_reportseff"):
        wired["seff_packages"] = []
    return wired


def _packages_of_people(site: Site, host: Host) -> list[str]:
    """What is installed for people on a host, where they work there."""
    if host not in site.logins and NODE not in host.groups:
        return []
    windows = ["xauth"] if host.value("ssh_server_x11_forwarding") else []
    return [*default_of("user_environment_packages"), *windows]
