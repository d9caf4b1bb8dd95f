"""Many host names as one expression, as Slurm writes it: ``node[1-4]``."""

import re
from collections.abc import Collection, Iterable

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

_COMMA = re.compile(r",(?![^\[]*\])")
_COLON = re.compile(r":(?![^\[]*\])")


def fold(names: Iterable[str]) -> str:
    """The expression; where a name is none that an expression can hold, all are listed."""
    listed = list(names)
    try:
        return (
            str(NodeSet.fromlist(listed, resolver=RESOLVER_NOGROUP)) if len(listed) > 1 else ", ".join(listed)
        )
    except NodeSetException:
        return ", ".join(listed)


def slurm_list(names: Iterable[str]) -> str:
    """The expression for a file of Slurm, which before 23.11 reads one range, at the end of a name."""
    listed = list(names)
    folded = NodeSet.fromlist([name for name in listed if name[-1:].isdigit()], resolver=RESOLVER_NOGROUP)
    folded.fold_axis = (-1,)
    return ",".join(filter(None, [str(folded), *(name for name in listed if not name[-1:].isdigit())]))


def all_but(names: Iterable[str]) -> str:
    """The pattern of all other hosts."""
    return ",".join(f"!{part.strip()}" for part in _COMMA.split(fold(names)))


def parts(pattern: str, known: Collection[str]) -> list[str]:
    """The patterns of which an Ansible pattern consists: between commas, or colons where it has none."""
    found = _COMMA.split(pattern)
    if len(found) == 1 and pattern not in known and not pattern.startswith(("~", "@")):
        found = _COLON.split(pattern)
    return [part.strip() for part in found if part.strip()]


def unfold(pattern: str, known: Collection[str]) -> list[str]:
    """The parts of an Ansible pattern with names of known hosts for expressions, which Ansible does not know.

    ``group[0:3]``, which to Ansible is a part of a group, stays, and so does all else.
    """
    return [name for part in parts(pattern, known) for name in _unfolded(part, known)]


def _unfolded(part: str, known: Collection[str]) -> list[str]:
    sign = part[0] if part.startswith(("!", "&")) else ""
    try:
        names = list(NodeSet(part.removeprefix(sign), resolver=RESOLVER_NOGROUP))
    except NodeSetException:
        return [part]
    if not names or not set(names) <= set(known):
        return [part]
    if sign == "&":
        # Each is an intersection of its own, so that they have to be one.
        return [f"&~(?:{'|'.join(map(re.escape, names))})$"]
    return [sign + name for name in names]
