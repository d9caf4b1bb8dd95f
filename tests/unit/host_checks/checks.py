"""The parts of the module host_check, importable as Ansible makes them importable."""

from importlib import import_module
from typing import Any

from tests.unit.roles.loading import load_module

Finding = dict[str, str]


def part(name: str) -> Any:  # noqa: ANN401 - a module that mypy does not see
    """One of playbooks/module_utils/host_checks."""
    return import_module(f"ansible.module_utils.host_checks.{name}")


plugin = load_module("playbooks/action_plugins/host_check.py")
module = load_module("playbooks/library/host_check.py")


def said(findings: Any) -> list[tuple[str, str]]:  # noqa: ANN401
    """Severity and reference of findings."""
    return [(finding["severity"], finding["reference"]) for finding in findings]
