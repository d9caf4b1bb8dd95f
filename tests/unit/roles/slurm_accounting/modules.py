"""The parts of the module slurm_accounts, importable as Ansible makes them importable."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from tests.unit.roles.loading import load_module

Loaded = Any
"""A value of a class that is loaded when the tests run."""

ROLE = "roles/slurm_accounts"
RECORDINGS = Path(__file__).parent
RELEASES = ["22.05", "24.11"]


def _shared(name: str) -> ModuleType:
    module = load_module(f"{ROLE}/module_utils/{name}.py")
    sys.modules[f"ansible.module_utils.{name}"] = module
    return module


values = _shared("slurm_accounting_values")
projects = _shared("slurm_accounting_projects")
plans = _shared("slurm_accounting_plan")
declared = _shared("slurm_accounting_declared")
look = _shared("slurm_accounting_look")
given = _shared("slurm_accounting_given")
jobs = _shared("slurm_accounting_jobs")
module = load_module(f"{ROLE}/library/slurm_accounts.py")


def entries() -> dict[str, list[dict[str, Any]]]:
    """What the recordings were made with."""
    return dict(yaml.safe_load((RECORDINGS / "declared.yml").read_text(encoding="utf-8")))


def entry(kind: str, name: str, **options: object) -> dict[str, list[dict[str, Any]]]:
    """The recordings' declaration with one entry changed or added."""
    result = entries()
    found = [item for item in result[kind] if item["name"] == name]
    if found:
        found[0].update(options)
    else:
        result[kind].append({"name": name, **options})
    return result


def without(kind: str, name: str) -> dict[str, list[dict[str, Any]]]:
    """The recordings' declaration without the entries of a name."""
    result = entries()
    result[kind] = [item for item in result[kind] if item["name"] != name]
    return result


def recorded(release: str) -> Loaded:
    """A sacctmgr that answers its questions as a real one did, and takes no command."""

    def sacctmgr(*words: str) -> str:
        assert words[:2] == ("-nP", "show"), words
        return (RECORDINGS / release / f"{words[2]}.txt").read_text(encoding="utf-8")

    return sacctmgr
