#!/usr/bin/python
"""Ansible module: further components of the distribution's own archive, where packages need them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.root_file import give_to_root, keep, left

DOCUMENTATION = r"""
module: apt_components
short_description: Further components of the distribution's own archive, where packages need them
description:
  - When apt knows no version of the package, the sources that offer the component main get the further
    components in
    a file of deploy's own, from the same mirrors and with the same keys. The admin's files stay as they are.
options:
  package:
    description: The package for which the components are.
    type: str
    required: true
  version:
    description: What the package's version has to start with.
    type: str
    default: ""
  components:
    description: The components.
    type: list
    elements: str
    required: true
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_manages:
  description: C(files), the file with the components, once there is one.
  type: dict
  returned: always
"""

_APT = Path("/etc/apt")
_FILE = _APT / "sources.list.d/deploy-components.sources"
_LINE = re.compile(r"^deb\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)\s+(.+)$")
_DISTRIBUTIONS = ("debian", "ubuntu")


@dataclass(frozen=True)
class Origin:
    """Where a suite of the distribution comes from; ``signed_by`` is empty for apt's own keys."""

    uri: str
    suite: str
    signed_by: str

    def text(self, components: Sequence[str]) -> str:
        """As apt reads it."""
        lines = [
            "Types: deb",
            f"URIs: {self.uri}",
            f"Suites: {self.suite}",
            f"Components: {' '.join(components)}",
        ]
        return "\n".join([*lines, *([f"Signed-By: {self.signed_by}"] if self.signed_by else []), ""])


def of_lines(text: str) -> Iterator[tuple[Origin, list[str]]]:
    """The origins of a file in apt's one-line form, with their components."""
    for line in text.splitlines():
        found = _LINE.match(line.partition("#")[0].strip())
        if found:
            options = dict(word.split("=", 1) for word in (found[1] or "").split() if "=" in word)
            yield Origin(found[2], found[3], options.get("signed-by", "")), found[4].split()


def of_stanzas(text: str) -> Iterator[tuple[Origin, list[str]]]:
    """The origins of a file in apt's form of stanzas, with their components."""
    for stanza in re.split(r"\n\s*\n", re.sub(r"(?m)^#.*\n?", "", text)):
        fields = {
            name.lower(): value.strip()
            for name, value in re.findall(r"(?m)^([\w-]+):((?:.*)(?:\n[ \t].*)*)", stanza)
        }
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() in {
            "no",
            "false",
        }:
            continue
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                yield Origin(uri, suite, fields.get("signed-by", "")), fields.get("components", "").split()


def wanted(listed: Sequence[tuple[Origin, list[str]]], components: Sequence[str]) -> str:
    """The text of the file that offers the components wherever ``main`` is offered."""
    there: dict[Origin, set[str]] = {}
    for origin, names in listed:
        there.setdefault(origin, set()).update(names)
    stanzas = [
        origin.text(missing)
        for origin, names in there.items()
        if "main" in names and (missing := [name for name in components if name not in names])
    ]
    return (
        "# Made by deploy; changes made here are undone by the next run.\n" + "\n".join(stanzas)
        if stanzas
        else ""
    )


def read_sources(apt: Path) -> list[tuple[Origin, list[str]]]:
    """Every source of the admin's."""
    found: list[tuple[Origin, list[str]]] = []
    for path in [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]:
        if not path.is_file() or path.name == _FILE.name:
            continue
        read = of_stanzas if path.suffix == ".sources" else of_lines
        if path.suffix in {".list", ".sources"}:
            found += read(path.read_text(encoding="utf-8", errors="replace"))
    return found


def offers(policy: str, version: str) -> bool:
    """Whether `apt-cache policy PACKAGE` lists a version that starts so."""
    return bool(re.search(rf"^\s+(?:\*\*\*\s+)?{re.escape(version)}\S*\s+-?\d+$", policy, re.MULTILINE)) or (
        not version and "Candidate:" in policy and "Candidate: (none)" not in policy
    )


def main() -> None:
    """Look; where the package is unknown, write and refresh."""
    arguments: dict[str, Any] = {
        "package": {"type": "str", "required": True},
        "version": {"type": "str", "default": ""},
        "components": {"type": "list", "elements": "str", "required": True},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    package, version = module.params["package"], module.params["version"]

    def is_offered() -> bool:
        answer = module.run_command(["apt-cache", "policy", package], environ_update={"LC_ALL": "C"})[1]
        return offers(str(answer), version)

    if is_offered():
        changed = give_to_root(module, _FILE)
        manages = {"files": left([_FILE] if _FILE.exists() else [])}
        module.exit_json(changed=changed, deploy_manages=manages)
    text = wanted(read_sources(_APT), module.params["components"])
    changed = bool(text) and keep(module, _FILE, text)
    if module.check_mode:
        module.exit_json(changed=changed, deploy_manages={"files": [str(_FILE)]})
    command = ["apt-get", "--quiet", "update", "--error-on=any"]
    code, _, err = module.run_command(command, environ_update={"LC_ALL": "C"})
    if not is_offered():
        why = f" (apt-get update: {str(err).strip()[-300:]})" if code != 0 else ""
        module.fail_json(
            msg=f"no package source of this machine has {package} {version}{why}: is "
            f"{' '.join(module.params['components'])} on its mirror? see: apt-cache policy {package}"
        )
    module.exit_json(changed=changed, deploy_manages={"files": left([_FILE])})


if __name__ == "__main__":
    main()
