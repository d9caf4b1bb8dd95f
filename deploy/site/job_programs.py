"""Programs before and after jobs: those that Slurm could not run or would not wait for, or that harm."""

from collections.abc import Iterator, Mapping
from typing import Any

from deploy.errors import Finding
from deploy.site.inventory import Host, Site
from deploy.site.schema import options
from deploy.site.slurm_parameters import VARIABLE as PARAMETERS
from deploy.site.slurm_parameters import slurm_parameter
from deploy.site.values import faults, opaque

PROLOG, EPILOG = "prolog", "epilog"
_LISTS: Mapping[str, str] = {PROLOG: "job_programs_prolog", EPILOG: "job_programs_epilog"}
_GPU_FILES, _CLEAN_UP, _HEALTH = (
    "job_programs_gpu_files",
    "job_programs_clean_up",
    "job_programs_check_health",
)
_OWN_SECONDS: Mapping[str, Mapping[str, int]] = {
    PROLOG: {_GPU_FILES: 10},
    EPILOG: {_GPU_FILES: 10, _CLEAN_UP: 40, _HEALTH: 60},
}
"""Of deploy's own programs, as the role's vars have them."""
SLURM_WAITS = 300
"""Seconds that the role slurmctld has Slurm wait for a prolog or an epilog (PrologEpilogTimeout)."""
_TO_ASK_SLURM = 40
"""Seconds that the programs' runner needs for what a failure means, and to end one that hangs."""
_WAITS: Mapping[str, tuple[str, ...]] = {
    PROLOG: ("PrologEpilogTimeout", "BatchStartTimeout"),
    EPILOG: ("PrologEpilogTimeout",),
}


def is_declared(node: Host) -> bool:
    """Whether the inventory says anything of the programs of a node, be it that there are none."""
    return any(options()[name].role == "job_programs" for name in node.variables if name in options())


def has_prolog(node: Host) -> bool:
    """Whether something runs on a node before a job."""
    return bool(node.value(_LISTS[PROLOG]) or node.value(_GPU_FILES))


def has_epilog(node: Host) -> bool:
    """Whether something runs on a node after a job."""
    return bool(node.value(_LISTS[EPILOG])) or any(map(node.value, _OWN_SECONDS[EPILOG]))


def check_job_programs(site: Site) -> Iterator[Finding]:
    """All of it."""
    for node in site.nodes:
        for kind, variable in _LISTS.items():
            programs = node.variables.get(variable)
            if programs and not opaque(programs) and not faults(variable, programs):
                yield from _programs_of(node, variable, programs)
                yield from _too_long(site, node, kind, programs)
        yield from _divided_gpus(node)
    yield from _clean_up_of_logins(site)
    yield from _two_programs(site)


def _programs_of(node: Host, variable: str, programs: list[Mapping[str, Any]]) -> Iterator[Finding]:
    for program in programs:
        name, text = program["name"], program.get("text")
        if (text is None) == (program.get("path") is None):
            said = "neither text nor path" if text is None else "text and path"
            yield _invalid(node, variable, f"{name} has {said}", "write one of them")
        elif text is not None and not str(text).startswith("#!/"):
            hint = "begin the text with what runs it, as in #!/bin/sh"
            yield _invalid(node, variable, f"the text of {name} does not begin with #!/", hint)
        elif text is None and not str(program["path"]).startswith("/"):
            yield _invalid(node, variable, f"the path of {name} is not absolute", "write it from / on")


def _invalid(node: Host, variable: str, what: str, hint: str) -> Finding:
    return Finding(node.where(variable), "invalid-value", f"{variable}: {what}", hint)


def _too_long(site: Site, node: Host, kind: str, programs: list[Mapping[str, Any]]) -> Iterator[Finding]:
    """Slurm ends what runs them after some time, and drains the node: their limits add up to less."""
    default = options()[_LISTS[kind]].spec["options"]["seconds"]["default"]
    needed = _TO_ASK_SLURM + sum(int(program.get("seconds", default)) for program in programs)
    needed += sum(seconds for switch, seconds in _OWN_SECONDS[kind].items() if node.value(switch) is True)
    for master in site.controllers:
        for parameter in _WAITS[kind]:
            waits = slurm_parameter(master, parameter)
            limit = int(waits) if waits and waits.isdigit() else SLURM_WAITS
            if needed > limit:
                yield Finding(
                    node.where(_LISTS[kind]),
                    "job-programs-too-long",
                    f"the programs of {_LISTS[kind]} may take {needed} s together, with deploy's own and "
                    f"{_TO_ASK_SLURM} s to ask Slurm, and Slurm waits {limit} s ({parameter})",
                    f"lower their seconds, or raise {parameter} in {PARAMETERS}",
                )
                return


def _divided_gpus(node: Host) -> Iterator[Finding]:
    if node.value(_GPU_FILES) is True and node.value("mig_layout"):
        yield _invalid(
            node,
            _GPU_FILES,
            f"the GPUs of {node.name} are divided (mig_layout), and Slurm does not say which one an instance "
            "is of",
            "leave it out for this node",
        )


def _clean_up_of_logins(site: Site) -> Iterator[Finding]:
    """Who works on a login node has processes there without a job."""
    for node in site.nodes:
        open_to_all = node.variables.get("job_ssh_admits") == "everyone"
        if node.value(_CLEAN_UP) is True and (node in site.logins or open_to_all):
            why = "is a login node, too" if node in site.logins else "lets everyone in (job_ssh_admits)"
            yield Finding(
                node.where(_CLEAN_UP),
                "clean-up-on-login-node",
                f"{node.name} {why}: {_CLEAN_UP} would end what people do there when a job of theirs ends",
                f"set {_CLEAN_UP}: false for it",
            )


def _two_programs(site: Site) -> Iterator[Finding]:
    """What stands in slurmctld_parameters wins, so that deploy's would never run."""
    for master in site.controllers:
        for kind, has in ((PROLOG, has_prolog), (EPILOG, has_epilog)):
            own = slurm_parameter(master, kind)
            if own is not None and any(map(has, site.nodes)):
                yield Finding(
                    master.where(PARAMETERS),
                    "parameter-with-a-place",
                    f"{PARAMETERS} has {kind.capitalize()}: the programs of {_LISTS[kind]} would not run",
                    f"name that program in {_LISTS[kind]}, by its path",
                )
