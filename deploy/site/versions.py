"""The catalogue of everything that comes from elsewhere than a distribution's archive."""

import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from deploy.content import read_data
from deploy.site.inventory import Host
from deploy.site.schema import options

CATALOGUE = Path(__file__).with_name("versions.yml")
MIRROR = "bootstrap_mirror"
"""The variable with the base address of a site's mirror."""

_ADDRESS = re.compile(r"(https?|ftp)://(?P<rest>[^\s/]+/\S*)")


@cache
def catalogue() -> Mapping[str, Any]:
    """Variable of a role -> its value."""
    loaded: Mapping[str, Any] = read_data(CATALOGUE)
    return loaded


def downloads(host: Host, roles: Collection[str]) -> dict[str, Any]:
    """What the roles of a host fetch, by variable, from the host's mirror where it has one."""
    mirror = str(host.variables.get(MIRROR) or "")
    return {
        name: mirrored(value, mirror) for name, value in catalogue().items() if options()[name].role in roles
    }


def mirrored(value: Any, mirror: str) -> Any:  # noqa: ANN401 - a variable is whatever its role says
    """The value with every address replaced by its place on a mirror: MIRROR/HOST/PATH."""
    if not mirror:
        return value
    if isinstance(value, str):
        return _ADDRESS.sub(lambda found: f"{mirror.rstrip('/')}/{found['rest']}", value)
    if isinstance(value, Mapping):
        return {key: mirrored(inner, mirror) for key, inner in value.items()}
    return [mirrored(inner, mirror) for inner in value] if isinstance(value, list) else value
