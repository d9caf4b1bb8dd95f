"""Ansible modules live beside the roles that use them; tests import them from there."""

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[3]


def load_module(path: str) -> ModuleType:
    """The Python module at a path below the repository's root."""
    file = ROOT / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
