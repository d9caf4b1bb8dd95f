"""Preemption that suspends jobs: what they keep, nobody else gets."""

from collections.abc import Iterator

from deploy.errors import DeployError, Finding, Severity
from deploy.site.hardware import has_gpus, read_contract
from deploy.site.inventory import Host, Site

_MODE = "slurmctld_preempt_mode"
_SUSPEND = "suspend"


def check_preemption(site: Site) -> Iterator[Finding]:
    """A suspended job keeps its GPUs: who was to get them waits for its end."""
    try:
        contract = read_contract(site)
    except DeployError:
        contract = {}
    gpus = [node.name for node in site.nodes if has_gpus(node, contract)]
    if not gpus or not any(master.value("slurmctld_preemption") for master in site.controllers):
        return
    for host, variable, who in _suspending(site):
        yield Finding(
            host.where(variable),
            "preemption-keeps-gpus",
            f"{who} suspends jobs whose place is taken, and a suspended job keeps its GPUs: a job that wants "
            f"those of {gpus[0]} waits until it has ended",
            "choose requeue or cancel, which free them",
            Severity.WARNING,
        )


def _suspending(site: Site) -> Iterator[tuple[Host, str, str]]:
    """The hosts with the variable that suspends jobs, and whose jobs."""
    for master in site.controllers:
        if master.value(_MODE) == _SUSPEND:
            yield master, _MODE, _MODE
        yield from _entries(master, "slurmctld_partitions", "partition")
    for host in site.accounting_hosts:
        yield from _entries(host, "slurm_accounts_qos", "QOS")


def _entries(host: Host, variable: str, kind: str) -> Iterator[tuple[Host, str, str]]:
    declared = host.variables.get(variable)
    for entry in declared if isinstance(declared, list) else ():
        if isinstance(entry, dict) and str(entry.get("preempt_mode", "")).lower() == _SUSPEND:
            yield host, variable, f"{kind} {entry.get('name', '?')}"
