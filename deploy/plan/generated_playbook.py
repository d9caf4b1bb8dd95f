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
    path.write_text(json.dumps([*_plays(playbook(name), groups)]), encoding="utf-8")
    return path


def _plays(source: Path, groups: Collection[str]) -> Iterator[dict[str, Any]]:
    """The plays of phases are in the playbook itself or in those that it imports."""
    for play in read_data(source):
        imported = source.parent / play.get(_IMPORT, "")
        if _IMPORT not in play:
            if play["hosts"] not in _GROUPS or play["hosts"] in groups:
                yield play
        elif _has_phases(imported):
            yield from _plays(imported, groups)
        else:
            yield {**play, _IMPORT: str(imported)}


def _has_phases(source: Path) -> bool:
    return any(play.get("hosts") in _GROUPS for play in read_data(source))
