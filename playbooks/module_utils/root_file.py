"""Files of root's that modules keep: replaced at once, so that no reader sees them half-done."""

from __future__ import annotations

import grp
import hashlib
import os
import pwd
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible.module_utils.durable import keep_names, naming, new_name

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

_MODE = 0o644


def text_of(path: Path) -> str:
    """What a file says; nothing when it is not there."""
    return path.read_text(encoding="utf-8", errors="surrogateescape") if path.exists() else ""


def keep(
    module: AnsibleModule, path: Path, text: str, mode: int = _MODE, *, unsafe_writes: bool = False
) -> bool:
    """Gives a file its text, mode and owner; returns whether anything differs, also in check mode."""
    differs = not path.exists() or text_of(path) != text
    if differs and not module.check_mode:
        path.parent.mkdir(mode=0o755, exist_ok=True)
        # Beside its target, so that it can take the target's place at once.
        sibling = new_name(path)
        descriptor = os.open(sibling, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with naming(path), os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
                file.flush()
                os.fsync(descriptor)
            sibling.chmod(mode)
            module.atomic_move(str(sibling), str(path), unsafe_writes=unsafe_writes)
            keep_names(path.parent)
        finally:
            sibling.unlink(missing_ok=True)
    # What takes a file's place is given its mode and owner, which may be the very ones that are wrong.
    return give_to_root(module, path, mode) or differs


def give_to_root(module: AnsibleModule, path: Path, mode: int = _MODE) -> bool:
    """Gives a file that is there to root; returns whether anything differs, also in check mode."""
    differs = False
    if path.exists():
        differs = module.set_mode_if_different(str(path), mode, differs)
        differs = module.set_owner_if_different(str(path), "root", differs)
        differs = module.set_group_if_different(str(path), "root", differs)
    return bool(differs)


def left(paths: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """The states in which a module leaves files and directories, for its ``deploy_manages``."""
    return {str(path): _state(path) if path.exists() else {} for path in paths}


def _state(path: Path) -> dict[str, Any]:
    found = path.stat()
    state = {
        "mode": format(stat.S_IMODE(found.st_mode), "04o"),
        "owner": _name(pwd.getpwuid, found.st_uid),
        "group": _name(grp.getgrgid, found.st_gid),
    }
    if path.is_file():
        return {"type": "file", "content": f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}", **state}
    return {"type": "directory", **state} if path.is_dir() else {}


def _name(entry_of: Callable[[int], Any], number: int) -> str:
    try:
        return str(entry_of(number)[0])
    except KeyError:
        return str(number)
