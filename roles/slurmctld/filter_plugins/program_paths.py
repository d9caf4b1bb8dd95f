"""Filter: where the programs lie that a site gives Slurm, as texts or by their paths."""

from collections.abc import Callable, Mapping
from typing import Any


def program_paths(programs: Mapping[str, Mapping[str, Any]], directory: str) -> dict[str, str]:
    """By name the path: the one that is said, else ``directory`` and the name; empty where none is said."""
    return {
        name: str(said.get("path") or f"{directory}/{name}") if said else ""
        for name, said in programs.items()
    }


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """The filter by name."""
        return {"program_paths": program_paths}
