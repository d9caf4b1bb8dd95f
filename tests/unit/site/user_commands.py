"""What the commands of a site's user-commands.yml ask for."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.site.inventory import Host, Site
from deploy.site.user_commands import FILE_NAME, Command, read_user_commands

SITES = Path(__file__).parents[3] / "inventory" / "sites"

_CALL = re.compile(r"(?<![\w/.-])(salloc|sbatch|srun|squeue|sinfo|sacct)(?![\w.-])")
_SUBMITS = frozenset({"salloc", "sbatch", "srun"})
_END_OF_COMMAND = re.compile(r"[|;&()<>]+")
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "partition": ("--partition", "-p"),
    "account": ("--account", "-A"),
    "qos": ("--qos", "-q"),
    "constraint": ("--constraint", "-C"),
    "nodes": ("--nodes", "-N"),
    "nodelist": ("--nodelist", "-w", "--exclude", "-x"),
    "cpus": ("--cpus-per-task", "-c"),
    "tasks": ("--ntasks-per-node",),
    "memory": ("--mem",),
    "gres": ("--gres",),
    "gpus": ("--gpus", "-G", "--gpus-per-node", "--gpus-per-task"),
}
_UNITS = {"K": 1 / 1024, "M": 1, "": 1, "G": 1024, "T": 1024 * 1024}


@dataclass(frozen=True)
class Request:
    """What one call of a Slurm command, or the #SBATCH lines of one script, asks for, by kind of option."""

    program: str
    asked: Mapping[str, str]


def read_commands(site: str) -> dict[str, Any]:
    """The content of a site's file."""
    return read_user_commands(SITES / site / FILE_NAME)


def texts(command: Command) -> Iterator[str]:
    """Everything of a command that a shell or Slurm reads."""
    yield command["run"]
    yield command.get("input", "")
    yield from command.get("files", {}).values()


def requests(command: Command) -> Iterator[Request]:
    """What a command asks Slurm for."""
    for text in texts(command):
        lines = text.replace("\\\n", " ").splitlines()
        directives = " ".join(
            line.removeprefix("#SBATCH").partition(" #")[0] for line in lines if line.startswith("#SBATCH")
        )
        if directives:
            yield Request("sbatch", _asked(shlex.split(directives)))
        for line in lines:
            if not line.lstrip().startswith("#"):
                yield from _calls(line)


def _calls(line: str) -> Iterator[Request]:
    for match in _CALL.finditer(line):
        yield Request(match[1], _asked(_words(line[match.end() :])))


def _words(text: str) -> list[str]:
    """The words of a shell command up to its end; a quote that another line closes ends it, too."""
    splitter = shlex.shlex(text, posix=True, punctuation_chars=True)
    splitter.whitespace_split = True
    words = []
    try:
        for word in splitter:
            if _END_OF_COMMAND.fullmatch(word):
                break
            words.append(word)
    except ValueError:
        pass
    return words


def _asked(words: list[str]) -> dict[str, str]:
    """The options before the first other word; values of long ones follow an equals sign, but for --wrap."""
    asked: dict[str, str] = {}
    remaining = iter(words)
    for word in remaining:
        if not word.startswith("-"):
            break
        name, _, value = word.partition("=")
        if name == "--wrap" or not name.startswith("--"):
            value = next(remaining, "")
        for kind, options in _OPTIONS.items():
            if name in options:
                asked[kind] = value
    return asked


def modules(command: Command) -> Iterator[str]:
    """The modules that a command loads."""
    for text in texts(command):
        for names in re.findall(r"\bmodule (?:load|unload) ([^\n;&|'\"#]+)", text):
            yield from names.split()


def gpus_asked(request: Request) -> Iterator[tuple[str, int]]:
    """Type (empty for any) and number of GPUs per node or in all."""
    if gres := request.asked.get("gres"):
        kind, *rest = gres.split(":")
        assert kind == "gpu"
        yield (rest[0], int(rest[1])) if len(rest) > 1 else ("", int(rest[0]))
    if gpus := request.asked.get("gpus"):
        kind, _, number = gpus.rpartition(":")
        yield kind, int(number)


def needed(request: Request) -> dict[str, int]:
    """The nodes, and the CPUs and memory on one of them, that a submission asks for."""
    if request.program not in _SUBMITS:
        return {}
    found = {}
    if nodes := request.asked.get("nodes"):
        found["nodes"] = int(nodes)
    if cpus := request.asked.get("cpus"):
        found["cpus"] = int(cpus) * int(request.asked.get("tasks", "1"))
    if memory := request.asked.get("memory"):
        match = re.fullmatch(r"(\d+)([KMGT]?)", memory)
        assert match
        found["memory_mb"] = int(int(match[1]) * _UNITS[match[2]])
    return found


def partitions(site: Site) -> dict[str, list[Host]]:
    """The partitions of a site with their nodes, the default one also under the empty name."""
    found: dict[str, list[Host]] = {}
    for entry in site.controller.value("slurmctld_partitions"):
        groups = set(entry.get("groups") or [])
        found[entry["name"]] = [node for node in site.nodes if not groups or groups & node.groups]
        if entry.get("default"):
            found[""] = found[entry["name"]]
    return found


def gpu_types(node: Host) -> dict[str, int] | None:
    """The GPUs that are declared of a node, by type; None where they are discovered."""
    hardware = node.variables.get("slurmd_hardware") or {}
    if "gpus" not in hardware:
        return None
    return {gpu["type"]: gpu["count"] for gpu in hardware["gpus"]}


def known_modules(site: Site) -> set[str]:
    """The modules that a site offers, with and without their versions."""
    found: set[str] = set()
    for host in site.logins:
        found |= set(host.variables.get("site_modules") or [])
        found |= {f"cuda/{version}" for version in host.value("cuda_toolkit_versions")}
        found |= {f"{entry['name']}/{entry['version']}" for entry in host.value("ml_stack_environments")}
    return found | {name.partition("/")[0] for name in found}
