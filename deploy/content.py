"""Finds playbooks/ and roles/: beside the package in a checkout, inside it in an installed wheel."""

from pathlib import Path

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
