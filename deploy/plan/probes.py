"""What roles declare to be asked of their hosts, because no file, package or service shows it."""

from functools import cache
from typing import Any

import yaml

from deploy.content import roles


@cache
def probes(role: str) -> tuple[dict[str, Any], ...]:
    """A role's ``meta/probes.yml``: each has a ``name``, ``argv``, and ``ignore``, patterns of lines."""
    path = roles() / role / "meta" / "probes.yml"
    if not path.exists():
        return ()
    return tuple(yaml.safe_load(path.read_text(encoding="utf-8")))
