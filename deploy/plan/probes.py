"""What roles declare to be looked at on their hosts, because no result of a task shows it."""

from functools import cache
from typing import Any

import yaml

from deploy.content import roles


def probes(role: str) -> tuple[dict[str, Any], ...]:
    """The questions of a role: each has a ``name``, ``argv``, and ``ignore``, patterns of lines."""
    return tuple(entry for entry in declared(role) if "argv" in entry)


def files(role: str) -> tuple[str, ...]:
    """The files that a role writes in tasks whose results are hidden, there or not."""
    return tuple(path for entry in declared(role) for path in entry.get("files", ()))


@cache
def declared(role: str) -> tuple[dict[str, Any], ...]:
    """A role's ``meta/probes.yml``: named entries with either ``argv`` or ``files``."""
    path = roles() / role / "meta" / "probes.yml"
    if not path.exists():
        return ()
    return tuple(yaml.safe_load(path.read_text(encoding="utf-8")))
