"""What measurements are compared with, and which programs measure: our figures, and the site's over them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeGuard

SOFTWARE: Mapping[str, str] = {
    "nccl": "nccl-tests (built with MPI=1)",
    "nvbandwidth": "nvbandwidth",
    "dcgm": "DCGM (role dcgm, group_vars dcgm_*)",
    "python": "an environment with torch (ml_stack_environments)",
    "hpl-xhpl": "HPL",
    "hpl-hpcc": "the package hpcc",
}
"""By program, what one installs to have it."""


@dataclass(frozen=True)
class Tool:
    """A program that measures: how it is called, in which modules, in which container image."""

    command: str
    modules: tuple[str, ...] = ()
    image: str = ""


TOOLS: Mapping[str, Tool] = {
    "nccl": Tool("all_reduce_perf"),
    "nvbandwidth": Tool("nvbandwidth"),
    "dcgm": Tool("dcgmi"),
    "python": Tool("python3"),
    "hpl-xhpl": Tool("xhpl"),
    "hpl-hpcc": Tool("hpcc"),
}


@dataclass(frozen=True)
class BusBandwidth:
    """The bus bandwidth in GB/s that NCCL's all-reduce reaches on a fabric.

    ``gpu`` is a regular expression, found in the GPU's name; ``gpus`` is how many a node has; ``fabric`` is
    ``node`` for the links within a node, else the ports of a node to the fabric, as in ``8x400`` (Gb/s).
    """

    gpu: str
    fabric: str
    gb_per_s: float
    gpus: int | None = None


# Within a node of eight GPUs with NVSwitch. 476 to 480 GB/s for H100 with NVLink SHARP is what NCCL's authors
# name, and for A100 users report 232 (github.com/NVIDIA/nccl-tests, issues 212, 290 and 175); below is what
# Azure's health checks ask of these boards (github.com/Azure/azurehpc-health-checks, conf/nd96*.conf).
_WITHIN_NODES = (
    BusBandwidth("A100-SXM", "node", 228, 8),
    BusBandwidth("H100 80GB HBM3", "node", 460, 8),
    BusBandwidth("NVIDIA H200", "node", 431, 8),
)
# Between nodes, for each port: NCCL's authors measured 192 GB/s with the eight 200 Gb/s ports of a DGX A100
# (github.com/NVIDIA/nccl, issue 812), and name 46 to 48 GB/s for a port of 400 Gb/s (nccl-tests, issue 290).
PORTS: Mapping[str, float] = {"200": 24.0, "400": 46.0}


@dataclass(frozen=True)
class Benchmarks:
    """The programs, and what NCCL should reach."""

    tools: Mapping[str, Tool] = field(default_factory=lambda: dict(TOOLS))
    bus_bandwidth: tuple[BusBandwidth, ...] = _WITHIN_NODES
    own: frozenset[str] = frozenset()
    """The programs that the site says where to find."""

    def plan(self, percent: float) -> dict[str, Any]:
        """As the programs on the hosts want it."""
        return {
            "tools": {
                name: {"command": tool.command, "modules": list(tool.modules), "image": tool.image}
                for name, tool in self.tools.items()
            },
            "expected": [
                {"gpu": entry.gpu, "fabric": entry.fabric, "gb_per_s": entry.gb_per_s}
                | ({"gpus": entry.gpus} if entry.gpus else {})
                for entry in self.bus_bandwidth
            ],
            "ports": dict(PORTS),
            "percent": percent,
        }


KEYS = ("programs", "bus_bandwidth")
"""What of validation.yml is read here."""


def read_benchmarks(content: Mapping[Any, Any]) -> tuple[Benchmarks, list[str]]:
    """The site's, over ours, and what is wrong with them."""
    wrong: list[str] = []
    tools = dict(TOOLS)
    for name, described in _mapping(content.get("programs"), "programs", wrong).items():
        if name not in TOOLS:
            wrong.append(f"programs: there is no {name}; there are {', '.join(TOOLS)}")
        elif isinstance(described, str):
            tools[name] = Tool(described)
        elif (tool := _tool(described, TOOLS[name])) is not None:
            tools[name] = tool
        else:
            wrong.append(f"programs.{name}: a command, or command, modules and image, and nothing else")
    entries = content.get("bus_bandwidth") or []
    own = []
    for number, entry in enumerate(entries if isinstance(entries, list) else [entries], 1):
        if (read := _entry(entry)) is None:
            wrong.append(f"bus_bandwidth, entry {number}: gpu, fabric and gb_per_s, and gpus where one wants")
        else:
            own.append(read)
    named = frozenset(name for name in TOOLS if tools[name] != TOOLS[name])
    return Benchmarks(tools, (*own, *_WITHIN_NODES), named), wrong


def _mapping(value: Any, name: str, wrong: list[str]) -> Mapping[str, Any]:  # noqa: ANN401 - as YAML has it
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        wrong.append(f"{name}: not a mapping")
        return {}
    return {str(key): item for key, item in value.items()}


def _tool(described: Any, ours: Tool) -> Tool | None:  # noqa: ANN401 - as YAML has it
    if not isinstance(described, Mapping) or set(described) - {"command", "modules", "image"}:
        return None
    command, modules = described.get("command", ours.command), described.get("modules", [])
    image = described.get("image", "")
    if not all(isinstance(word, str) for word in (command, image)) or not isinstance(modules, list):
        return None
    return Tool(command, tuple(map(str, modules)), image)


def _entry(entry: Any) -> BusBandwidth | None:  # noqa: ANN401 - as YAML has it
    if not isinstance(entry, Mapping) or set(entry) - {"gpu", "gpus", "fabric", "gb_per_s"}:
        return None
    gpu, fabric, figure, gpus = (entry.get(key) for key in ("gpu", "fabric", "gb_per_s", "gpus"))
    if not isinstance(gpu, str) or not isinstance(fabric, str) or not _is_number(figure):
        return None
    if gpus is not None and not (isinstance(gpus, int) and gpus > 0):
        return None
    try:
        re.compile(gpu)
    except re.error:
        return None
    return BusBandwidth(gpu, fabric, float(figure), gpus)


def _is_number(value: Any) -> TypeGuard[float]:  # noqa: ANN401 - as YAML has it
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf


def module_with_torch(environments: Any) -> Iterator[str]:  # noqa: ANN401 - a variable of the role ml_stack
    """The modules of a site's Python environments that have torch."""
    for environment in environments if isinstance(environments, list) else []:
        wanted = environment.get("requirements") or []
        if any(str(line).split("==")[0].strip() == "torch" for line in wanted):
            yield f"{environment['name']}/{environment['version']}"
