"""An inventory as ``ansible-inventory`` prints it, turned into what listing.py answers.

For an Ansible whose insides are not as listing.py knows them: it takes longer, nobody says in which line a
variable stands, and templates stay as they are written.
"""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_ANSIBLE_INVENTORY = str(Path(sys.executable).parent / "ansible-inventory")
_CONNECTION = "ansible_"
_ENCRYPTED = "__ansible_vault"
_ERROR = re.compile(r"^\[?ERROR\]?[:!] (?P<text>.*(?:\n(?!\[).*)*)", re.MULTILINE)


def plain_listing(
    environment: Mapping[str, str],
    inventory: str,
    playbook_directory: str,
    limit: str,
    vault_password_file: str,
) -> tuple[dict[str, Any], str]:
    """What listing.py would answer, less the origins and what templates come to, and the warnings as text."""
    command = [_ANSIBLE_INVENTORY, "--list", "--inventory", inventory, "--playbook-dir", playbook_directory]
    command += ["--limit", limit] if limit else []
    command += ["--vault-password-file", vault_password_file] if vault_password_file else []
    try:
        result = subprocess.run(
            command, env=environment, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as problem:
        return {"error": f"{_ANSIBLE_INVENTORY}: {problem.strerror}", "where": ""}, ""
    if result.returncode:
        told = _ERROR.search(result.stderr)
        text = told["text"] if told else result.stderr[-300:]
        return {"error": " ".join(text.split()), "where": ""}, result.stderr
    return _answer(json.loads(result.stdout)), result.stderr


def _answer(listed: Mapping[str, Any]) -> dict[str, Any]:
    groups = {name: [*dict.fromkeys(_members(name, listed))] for name in ("all", *_groups(listed))}
    variables = listed["_meta"]["hostvars"]
    hosts = {name: _without_secrets(variables.get(name, {})) for name in groups["all"]}
    return {
        "hosts": hosts,
        "groups": groups,
        "origins": {name: {} for name in hosts},
        "connections": {
            name: {key: value for key, value in own.items() if key.startswith(_CONNECTION)}
            for name, own in hosts.items()
        },
        "resolved": {},
        "resolutions": [],
    }


def _groups(listed: Mapping[str, Any]) -> Iterator[str]:
    """Empty ones are named only where they belong to another."""
    for name, group in listed.items():
        if name != "_meta":
            yield from (name, *group.get("children", ()))


def _members(name: str, listed: Mapping[str, Any]) -> Iterator[str]:
    """Its own hosts, then its children's, then theirs, as Ansible orders them."""
    level, seen = [name], set[str]()
    while level:
        groups = [listed.get(each, {}) for each in level]
        yield from (host for group in groups for host in group.get("hosts", ()))
        seen.update(level)
        level = [child for group in groups for child in group.get("children", ()) if child not in seen]


def _without_secrets(value: Any) -> Any:  # noqa: ANN401 - a variable is whatever its role says
    """Of a value that is encrypted by itself only whether it changed."""
    if isinstance(value, dict):
        if value.keys() == {_ENCRYPTED}:
            return {_ENCRYPTED: hashlib.sha256(value[_ENCRYPTED].encode()).hexdigest()}
        return {name: _without_secrets(part) for name, part in value.items()}
    return [*map(_without_secrets, value)] if isinstance(value, list) else value
