"""Many host names as one expression, as Slurm writes it: ``node[1-4]``."""

import re
from collections.abc import Collection, Iterable

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

_COMMA = re.compile(r",(?![^\[]*\])")


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


def unfold(pattern: str, known: Collection[str]) -> str:
    """An Ansible pattern with the names of known hosts instead of expressions, which Ansible does not know.

    ``group[0:3]``, which to Ansible is a part of a group, stays, and so does all else.
    """
    return ",".join(_unfolded(part.strip(), known) for part in _COMMA.split(pattern))


def _unfolded(part: str, known: Collection[str]) -> str:
    sign = "!" if part.startswith("!") else ""
    try:
        names = list(NodeSet(part.removeprefix(sign), resolver=RESOLVER_NOGROUP))
    except NodeSetException:
        return part
    return ",".join(sign + name for name in names) if names and set(names) <= set(known) else part
