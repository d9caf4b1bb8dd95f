"""Nodes that Slurm switches off and on: by which programs, and whether they may be."""

from collections.abc import Iterator, Mapping
from typing import Any

from deploy.errors import DeployError, Finding, Severity
from deploy.site.hardware import VARIABLE as HARDWARE
from deploy.site.hardware import is_discovered, read_contract
from deploy.site.inventory import MEMBERS, NODE, OF_NODES, Host, Site
from deploy.site.slurm_parameters import VARIABLE as PARAMETERS
from deploy.site.slurm_parameters import slurm_parameter

NODES_VARIABLE = "slurmd_power_saving"
CLOUD = "cloud"
_SUSPEND, _RESUME, _RESUME_FAIL = (
    f"slurmctld_{kind}_program" for kind in ("suspend", "resume", "resume_fail")
)
_PARTITIONS = "slurmctld_suspend_except_partitions"
_PARAMETERS: Mapping[str, str] = {
    "SuspendProgram": _SUSPEND,
    "ResumeProgram": _RESUME,
    "ResumeFailProgram": _RESUME_FAIL,
    "SuspendTime": "slurmctld_suspend_time",
    "SuspendTimeout": "slurmctld_suspend_timeout",
    "SuspendExcNodes": NODES_VARIABLE,
    "SuspendExcParts": _PARTITIONS,
}
"""Parameters of slurm.conf that a site would take from what deploy goes by, and the variables for them."""


def power_saved(site: Site) -> tuple[Host, ...]:
    """The nodes that Slurm switches off."""
    return tuple(node for node in site.nodes if node.value(NODES_VARIABLE))


def is_cloud(node: Host) -> bool:
    """Whether a node is made when a job needs it: before that there is no machine."""
    return bool(node.value(NODES_VARIABLE) == CLOUD)


def check_power_saving(site: Site) -> Iterator[Finding]:
    """What is wrong with it; keys and types are the schema's business."""
    saved = power_saved(site)
    for master in site.controllers:
        yield from _programs(master, saved)
        yield from _partitions(master)
        if saved:
            yield from _parameters(master)
    yield from _servers(site, saved)
    yield from _clouds(site, saved)


def _programs(master: Host, saved: tuple[Host, ...]) -> Iterator[Finding]:
    said = {name: master.value(name) for name in (_SUSPEND, _RESUME, _RESUME_FAIL)}
    missing = [name for name in (_SUSPEND, _RESUME) if not said[name]]
    if saved and missing:
        yield Finding(
            saved[0].where(NODES_VARIABLE),
            "power-saving-without-programs",
            f"{saved[0].name} has {NODES_VARIABLE}, and {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not set: Slurm could not switch it",
            f"set {' and '.join(missing)} for [slurm-master], or leave {NODES_VARIABLE} out",
        )
    elif not saved and any(said.values()):
        name = next(name for name, program in said.items() if program)
        yield Finding(
            master.where(name),
            "power-saving-without-nodes",
            f"{name} is set, and no node has {NODES_VARIABLE}: none is switched off",
            f"set {NODES_VARIABLE}: machine, or cloud, for the nodes that it is for",
            Severity.WARNING,
        )
    for name, program in said.items():
        if isinstance(program, dict) and program:
            yield from _program(master, name, program)


def _program(master: Host, name: str, program: Mapping[str, Any]) -> Iterator[Finding]:
    text, path = program.get("text"), program.get("path")
    what = hint = ""
    if (text is None) == (path is None):
        what, hint = "neither text nor path" if text is None else "text and path", "write one of them"
    elif text is not None and not str(text).startswith("#!/"):
        what, hint = "a text that does not begin with #!/", "begin it with what runs it, as in #!/bin/sh"
    elif path is not None and (not str(path).startswith("/") or " " in str(path)):
        what, hint = f"the path {path}, which is not absolute, or has spaces", "write it from / on"
    if what:
        yield Finding(master.where(name), "invalid-value", f"{name} has {what}", hint)


def _partitions(master: Host) -> Iterator[Finding]:
    said, declared = master.value(_PARTITIONS), master.value("slurmctld_partitions")
    entries = declared if isinstance(declared, list) else []
    known = [str(each.get("name")) for each in entries if isinstance(each, dict)]
    for name in said if isinstance(said, list) else ():
        if str(name) not in known:
            yield Finding(
                master.where(_PARTITIONS),
                "power-saving-unknown-partition",
                f"{_PARTITIONS} names {name}, which is not declared",
                f"one of {', '.join(known)}",
            )


def _parameters(master: Host) -> Iterator[Finding]:
    for parameter, variable in _PARAMETERS.items():
        if slurm_parameter(master, parameter) is not None:
            yield Finding(
                master.where(PARAMETERS),
                "parameter-with-a-place",
                f"{PARAMETERS} has {parameter}: nodes would be switched by something else than the rest of "
                "the inventory says",
                f"set {variable}",
            )


def _servers(site: Site, saved: tuple[Host, ...]) -> Iterator[Finding]:
    """A host that others need is not to be switched off because no job needs it."""
    for node in saved:
        serves = [name for name in MEMBERS if name not in OF_NODES and node in site.group(name)]
        if serves:
            yield Finding(
                node.where(NODES_VARIABLE),
                "power-saving-of-a-server",
                f"{node.name} has {NODES_VARIABLE}, and is in [{serves[0]}]: it would be switched off under "
                "those whom it serves",
                f"leave {NODES_VARIABLE} empty for it, or take it out of [{serves[0]}]",
            )


def _clouds(site: Site, saved: tuple[Host, ...]) -> Iterator[Finding]:
    try:
        contract = read_contract(site)
    except DeployError:
        return  # Named by the check of the hardware.
    for node in saved:
        if is_cloud(node) and not is_discovered(node, contract):
            yield Finding(
                node.where(NODES_VARIABLE),
                "cloud-node-of-unknown-hardware",
                f"{node.name} is made when a job needs it, and nothing says what it will have: there is no "
                "machine to ask",
                f"write {HARDWARE} for it, as {{cpus: 8, memory_mb: 30000, gpus: []}}, or have it run once, "
                f"in [{NODE}] without {NODES_VARIABLE}",
            )
