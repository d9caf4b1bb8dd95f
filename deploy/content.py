"""Finds playbooks/ and roles/: beside the package in a checkout, inside it in an installed wheel."""

from pathlib import Path
from typing import Any

import yaml

# The parser in C takes a tenth of the time; every command that reads a site waits for it.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PACKAGE = Path(__file__).resolve().parent


def content_root() -> Path:
    """The directory that holds ``playbooks/`` and ``roles/``."""
    installed = _PACKAGE / "content"
    return installed if installed.is_dir() else _PACKAGE.parent


def playbook(name: str) -> Path:
    """Path of ``playbooks/<name>.yml``."""
    return content_root() / "playbooks" / f"{name}.yml"


def roles() -> Path:
    """Path of ``roles/``."""
    return content_root() / "roles"


def ansible_config() -> Path:
    """The ansible.cfg read instead of the caller's own."""
    return content_root() / "playbooks" / "ansible.cfg"


def read_data(path: Path) -> Any:  # noqa: ANN401 - whatever stands there
    """What a YAML file of deploy's own says."""
    return yaml.load(path.read_bytes(), Loader=_Loader)  # noqa: S506 - a SafeLoader
