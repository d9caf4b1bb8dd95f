"""The hardware contract: what each compute node has, declared or discovered once, never shrinking by itself.

Declared: the host variable ``slurmd_hardware``. What it leaves out is discovered once and kept in
``hardware.yml`` beside the inventory, where the admin can read and change it.
"""

from collections.abc import Mapping
from typing import Any

import yaml

from deploy.errors import Finding, error
from deploy.site.inventory import Host, Site

FILE_NAME = "hardware.yml"
VARIABLE = "slurmd_hardware"
_KEYS = ("cpus", "sockets", "cores_per_socket", "threads_per_core", "memory_mb", "gpus")
_HEADER = """\
# What each compute node had when deploy first saw it: the contract Slurm's configuration is made from.
# A node that later shows less is reported; nothing here changes by itself. After an upgrade remove the
# node's entry or write the new value. slurmd_hardware in group_vars or host_vars wins over this file.
"""

Hardware = Mapping[str, Any]
"""Counts ``cpus``, ``sockets``, ``cores_per_socket``, ``threads_per_core``; ``memory_mb`` in MiB; ``gpus``, a
list of ``type`` and ``count``."""


def read_contract(site: Site) -> dict[str, dict[str, Any]]:
    """What hardware.yml holds, by node name. Raises DeployError ``hardware-invalid``."""
    path = site.directory / FILE_NAME
    if not path.exists():
        return {}
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as problem:
        raise error(
            "hardware-invalid",
            f"not YAML: {problem}",
            where=str(path),
            hint="mend it, or remove it to have it discovered again",
        ) from None
    wrong = (
        [name for name, entry in content.items() if not isinstance(entry, dict) or entry.keys() - set(_KEYS)]
        if isinstance(content, dict)
        else ["the file"]
    )
    if wrong:
        raise error(
            "hardware-invalid",
            f"{', '.join(map(str, wrong))}: known keys are {', '.join(_KEYS)}",
            where=str(path),
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


def undiscovered(site: Site, contract: Mapping[str, Hardware]) -> tuple[Host, ...]:
    """The nodes whose contract still lacks something that only the machine can tell."""
    needed = {"cpus", "memory_mb", "gpus"}
    return tuple(node for node in site.nodes if needed - hardware_of(node, contract).keys())


def keep(site: Site, found: Mapping[str, Hardware]) -> None:
    """Adds what was discovered to hardware.yml; entries that are there stay as they are."""
    path = site.directory / FILE_NAME
    contract = read_contract(site)
    for name, hardware in found.items():
        host = site.hosts[name]
        new = {k: v for k, v in hardware.items() if k in _KEYS and k not in declared(host)}
        contract[name] = {**new, **contract.get(name, {})}
    body = yaml.safe_dump(contract, sort_keys=True, default_flow_style=None, width=110)
    sibling = path.with_name(f".{path.name}.new")
    sibling.write_text(_HEADER + body, encoding="utf-8")
    sibling.replace(path)


def check_hardware(site: Site) -> list[Finding]:
    """GPUs that are declared without a type."""
    return [
        Finding(
            node.name,
            "gpu-without-type",
            "a GPU is declared without its type",
            "write for example: slurmd_hardware: {gpus: [{type: a100, count: 4}]}",
        )
        for node in site.nodes
        for gpu in _declared_gpus(node)
        if not str(gpu.get("type", "")).strip()
    ]


def _declared_gpus(node: Host) -> list[dict[str, Any]]:
    gpus = declared(node).get("gpus", [])
    return [gpu for gpu in gpus if isinstance(gpu, dict)] if isinstance(gpus, list) else []
