"""Has Ansible read an inventory, and turns what it complains of into findings."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.content import ansible_config
from deploy.errors import DeployError, Finding, Severity
from deploy.site.origin import shown

_YAML_SUFFIXES = frozenset({".yml", ".yaml", ".json"})
_COMPLAINT = re.compile(r"^\[WARNING\]: (?P<text>.*(?:\n(?!\[).*)*)", re.MULTILINE)
_UNREADABLE = re.compile(r"Failed to parse inventory with '(?P<plugin>\w+)' plugin: (?P<reason>.*)")
_ORIGIN = re.compile(r"^Origin: (?P<place>/.*?:\d+)(?::\d+)?$", re.MULTILINE)
_SECRET = re.compile(r"(\b\w*(?:pass|key|secret|token)\w*[\"']?\s*[=:]\s*)\S.*", re.IGNORECASE)
_EXPECTED = ("Invalid characters were found in group names", "Deprecation warnings can be disabled")
"""What Ansible says of the hyphens in Slurm's group names, and of what it says elsewhere."""


@dataclass(frozen=True)
class Reading:
    """An inventory as Ansible reads it. ``origins`` says ``file:line`` by host and variable."""

    hosts: Mapping[str, Mapping[str, Any]]
    groups: Mapping[str, list[str]]
    origins: Mapping[str, Mapping[str, str]]
    warnings: tuple[Finding, ...]


def read_with_ansible(inventory: Path, limit: str | None, vault_password_file: Path | None) -> Reading:
    """What Ansible makes of an inventory. Raises DeployError ``inventory-invalid``."""
    command = [sys.executable, "-I", str(Path(__file__).with_name("listing.py")), str(inventory)]
    command += [str(ansible_config().parent), limit or "", str(vault_password_file or "")]
    environment = os.environ | {
        "ANSIBLE_CONFIG": str(ansible_config()),
        "ANSIBLE_DUPLICATE_YAML_DICT_KEY": "error",
        "ANSIBLE_INVENTORY_UNPARSED_FAILED": "true",
        "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true",
        "ANSIBLE_NOCOLOR": "1",
    }
    result = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    try:
        answer: dict[str, Any] = json.loads(result.stdout)
    except ValueError:
        answer = {"error": " ".join(result.stderr.split())[-300:], "where": ""}
    if "error" in answer:
        raise DeployError(_unreadable(inventory, answer["error"], answer["where"], result.stderr))
    return Reading(
        answer["hosts"], answer["groups"], answer["origins"], tuple(_doubts(inventory, result.stderr))
    )


def _unreadable(inventory: Path, error: str, place: str, stderr: str) -> Finding:
    """The one cause: each of Ansible's readers complains of a file, and only one was meant for it."""
    meant = "yaml" if inventory.suffix in _YAML_SUFFIXES else "ini"
    for complaint in _COMPLAINT.finditer(stderr):
        if (found := _UNREADABLE.search(complaint["text"])) and found["plugin"] == meant:
            error = found["reason"]
            place = origin["place"] if (origin := _ORIGIN.search(stderr)) else place
    return Finding(
        shown(place) if place else str(inventory),
        "inventory-invalid",
        f"Ansible cannot read this: {_discreet(error)}",
        f"mend it until this answers: ansible-inventory -i {inventory} --list",
    )


def _doubts(inventory: Path, stderr: str) -> Iterator[Finding]:
    """What Ansible read with a warning: it goes on, with less than was written."""
    for complaint in _COMPLAINT.finditer(stderr):
        text = _discreet(" ".join(complaint["text"].split("\n\n")[0].split()))
        if not text.startswith(_EXPECTED):
            yield Finding(
                str(inventory),
                "inventory-doubtful",
                f"Ansible says: {text}",
                "mend what it names; it went on without that",
                Severity.WARNING,
            )


def _discreet(text: str) -> str:
    """A complaint without the values of what sounds like a secret: Ansible quotes lines as they are."""
    return _SECRET.sub(r"\1(not shown)", text)[:600]
