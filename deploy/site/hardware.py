"""The hardware contract: what each compute node has, declared or discovered once, never shrinking by itself.

Declared: the host variable ``slurmd_hardware``. What it leaves out is discovered once and kept in
``hardware.yml`` beside the inventory, where the admin can read and change it.
"""

from collections.abc import Mapping
from typing import Any

import yaml

from deploy.durable import replace_file
from deploy.errors import error
from deploy.site import own_files
from deploy.site.inventory import Host, Site
from deploy.site.origin import shown
from deploy.site.plain_yaml import NotReadable, parse_mapping, read_text

FILE_NAME = own_files.HARDWARE
VARIABLE = "slurmd_hardware"
_KEYS = ("cpus", "sockets", "cores_per_socket", "threads_per_core", "memory_mb", "tmp_disk_mb", "gpus")
_NEEDED = frozenset({"cpus", "memory_mb", "gpus"})
_HEADER = """\
# What each compute node had when deploy first saw it: the contract Slurm's configuration is made from.
# A node that later shows less is reported; nothing here changes by itself. After an upgrade remove the
# node's entry or write the new value. slurmd_hardware in group_vars or host_vars wins over this file.
"""

Hardware = Mapping[str, Any]
"""Counts ``cpus``, ``sockets``, ``cores_per_socket``, ``threads_per_core``; ``memory_mb`` and ``tmp_disk_mb``
in MiB; ``gpus``, a list of ``type`` and ``count``."""
Contract = Mapping[str, Hardware]
"""The hardware of compute nodes, by name."""


def read_contract(site: Site) -> dict[str, dict[str, Any]]:
    """What hardware.yml holds, by node name. Raises DeployError ``hardware-invalid``."""
    path = site.directory / FILE_NAME
    if not path.exists():
        return {}
    try:
        content = parse_mapping(read_text(path))
    except NotReadable as problem:
        raise error(
            "hardware-invalid",
            f"this file cannot be read: {problem.reason}",
            where=shown(problem.place(path)),
            hint="fix it, or remove it to have the nodes discovered again",
        ) from None
    wrong = [
        name for name, entry in content.items() if not isinstance(entry, dict) or entry.keys() - set(_KEYS)
    ]
    if wrong:
        raise error(
            "hardware-invalid",
            f"{', '.join(wrong)}: known keys are {', '.join(_KEYS)}",
            where=shown(str(path)),
            hint="remove the entry to have it discovered again",
        )
    return content


def declared(host: Host) -> dict[str, Any]:
    """What the inventory says of a node."""
    value = host.variables.get(VARIABLE)
    return dict(value) if isinstance(value, dict) else {}


def hardware_of(host: Host, contract: Mapping[str, Hardware]) -> dict[str, Any]:
    """A node's contract: declared values over discovered ones, in the order of the keys."""
    merged = {**contract.get(host.name, {}), **declared(host)}
    if "cpus" in declared(host) and not {"sockets", "cores_per_socket"} & declared(host).keys():
        for key in ("sockets", "cores_per_socket", "threads_per_core"):
            merged.pop(key, None)
    return {key: merged[key] for key in _KEYS if key in merged}


def has_gpus(host: Host, contract: Mapping[str, Hardware]) -> bool:
    """Whether a node's contract has GPUs."""
    return bool(hardware_of(host, contract).get("gpus"))


def undiscovered(site: Site, contract: Mapping[str, Hardware]) -> tuple[Host, ...]:
    """The nodes whose contract still lacks something that only the machine can tell."""
    return tuple(node for node in site.nodes if not is_discovered(node, contract))


def is_discovered(host: Host, contract: Mapping[str, Hardware]) -> bool:
    """Whether a node's contract holds what Slurm must be told."""
    return hardware_of(host, contract).keys() >= _NEEDED


def completed(site: Site, contract: Contract, found: Contract) -> dict[str, Hardware]:
    """A contract with what was discovered: what is declared, or was known already, stays as it is."""
    new = {
        name: {key: of[key] for key in _KEYS if key in of and key not in declared(site.hosts[name])}
        for name, of in found.items()
    }
    return {**contract, **{name: {**of, **contract.get(name, {})} for name, of in new.items()}}


def keep(site: Site, found: Contract) -> None:
    """Adds what was discovered to hardware.yml; entries that are there stay as they are."""
    _write(site, completed(site, read_contract(site), found))


def forget(site: Site, name: str) -> None:
    """Takes a node's entry out of hardware.yml, so that the next run discovers it."""
    _write(site, {other: of for other, of in read_contract(site).items() if other != name})


def _write(site: Site, contract: Contract) -> None:
    whole = {name: dict(of) for name, of in contract.items()}
    body = yaml.safe_dump(whole, sort_keys=True, default_flow_style=None, width=110)
    replace_file(site.directory / FILE_NAME, _HEADER + body, 0o644)
