"""Ansible modules live beside the roles that use them; tests import them from there."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import ansible.module_utils

ROOT = Path(__file__).parents[3]

# As ansible-playbook does: what lies beside playbooks and roles is part of the package ansible.module_utils.
ansible.module_utils.__path__ += [
    str(ROOT / "playbooks/module_utils"),
    *map(str, ROOT.glob("roles/*/module_utils")),
]


def load_module(path: str) -> ModuleType:
    """The Python module at a path below the repository's root."""
    file = ROOT / path
    spec = importlib.util.spec_from_file_location(f"loaded_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Where dataclasses look for the names in their annotations.
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


def load_program(path: str, *others: str) -> ModuleType:
    """The same, of one that finds those beside it, and others, as it does where it is installed."""
    places = [str((ROOT / path).parent), *(str(ROOT / other) for other in others)]
    sys.path[:0] = places
    try:
        return load_module(path)
    finally:
        for place in places:
            sys.path.remove(place)


def load_health(name: str) -> ModuleType:
    """A module of the node's health check."""
    place = "roles/node_health/files/usr/local/lib/node_health"
    return load_program(f"{place}/{name}.py", "playbooks/module_utils")
