"""Whether slurmctld has saved what it was told of nodes and reservations.

It saves some seconds after a change (five at most: SAVE_MAX_WAIT in its source, src/slurmctld/state_save.c of
24.11), and what it had not saved is lost with its host, though it had said yes.

Sent to controllers with the programs that ask, with the standard library of Python 3.9 alone.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def packed(text: str) -> bytes:
    """A text as slurmctld writes it: its length (four bytes, the first one highest), itself and a NUL.

    That is packstr() of src/common/pack.h, the same in 22.05, 24.11 and 26.05.
    """
    letters = text.encode() + b"\0"
    return struct.pack("!I", len(letters)) + letters


def saved_nodes(state: Path, reasons: Mapping[str, int]) -> bool:
    """Whether slurmctld has saved in ``state`` that so many nodes have each of these reasons, and no more."""
    return _has(state / "node_state", reasons)


def saved_reservations(state: Path, names: Mapping[str, int]) -> bool:
    """Whether it has saved that each of these reservations is there (1) or not (0)."""
    return _has(state / "resv_state", names)


def _has(file: Path, counts: Mapping[str, int]) -> bool:
    saved = _read(file)
    return all(saved.count(packed(text)) == count for text, count in counts.items())


def _read(file: Path) -> bytes:
    """What is in it, or nothing, as its directory's owner.

    Root is nobody on some storage, and that owner could have put a link to something of root's there.
    """
    user = os.geteuid()
    os.seteuid(file.parent.stat().st_uid)
    try:
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as saved:  # noqa: PTH123
            return saved.read()
    except FileNotFoundError:
        return b""
    finally:
        os.seteuid(user)
