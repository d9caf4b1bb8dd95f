"""The generated playbook: the plays of one of playbooks/ whose phases have something to do.

Ansible reads the roles of every play first, also of those whose hosts there are none of.
"""

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from deploy.content import playbook, read_data
from deploy.plan.catalog import PHASES

_IMPORT = "ansible.builtin.import_playbook"
_GROUPS = frozenset(phase.group for phase in PHASES)


def write_playbook(path: Path, name: str, groups: Collection[str]) -> Path:
    """Writes ``playbooks/<name>.yml`` without the plays of phases whose groups are not among these."""
    source = playbook(name)
    plays = [*_chosen(read_data(source), source.parent, groups)]
    path.write_text(json.dumps(plays), encoding="utf-8")
    return path


def _chosen(
    plays: list[dict[str, Any]], directory: Path, groups: Collection[str]
) -> Iterator[dict[str, Any]]:
    """The plays of phases are in the playbook itself or in those that it imports."""
    for play in plays:
        if _IMPORT not in play:
            if play["hosts"] not in _GROUPS or play["hosts"] in groups:
                yield play
            continue
        imported = directory / play[_IMPORT]
        inner = read_data(imported)
        if any(each.get("hosts") in _GROUPS for each in inner):
            yield from _chosen(inner, imported.parent, groups)
        else:
            yield {**play, _IMPORT: str(imported)}
