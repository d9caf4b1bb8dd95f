"""What a role says of itself to deploy, in its ``meta/deploy.yml``: the service that it leaves running."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from deploy.content import roles


@dataclass(frozen=True)
class Service:
    """A daemon that a role leaves running."""

    unit: str
    """Its systemd unit, without ``.service``."""
    optional: bool = False
    """Whether some distributions lack it, and a host works without."""
    programs: tuple[str, ...] = ()
    """The processes that listen on the role's port (``<role>_port``): the usual one, and others that may."""


@cache
def service(role: str) -> Service | None:
    """The service of a role, None where it leaves none; TypeError at a key that Service has not."""
    said = _declared(role).get("service")
    return Service(**{**said, "programs": tuple(said.get("programs", ()))}) if said else None


def programs(role: str) -> tuple[str, ...]:
    """The programs of a role that listen on its port, the usual one first."""
    found = service(role)
    return found.programs if found else ()


@cache
def optional_units() -> frozenset[str]:
    """Units without which a host works, of all roles."""
    declared = (service(path.name) for path in roles().iterdir())
    return frozenset(one.unit for one in declared if one and one.optional)


def _declared(role: str) -> dict[str, Any]:
    path = roles() / role / "meta" / "deploy.yml"
    return dict(yaml.safe_load(path.read_text(encoding="utf-8"))) if path.exists() else {}
