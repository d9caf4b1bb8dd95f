"""What the roles for software and node health must know of the whole site."""

from typing import Any

from deploy.site.inventory import Host, Site
from deploy.site.schema import options

Variables = dict[str, Any]


def software_variables(_site: Site, host: Host) -> Variables:
    """The variables of one host."""
    return {"environment_modules_packages": [_value(host, "environment_modules_implementation")]}


def _value(host: Host, name: str) -> Any:  # noqa: ANN401 - a variable is whatever its role says
    """A host's variable: what the inventory says, else the role's default."""
    return host.variables.get(name, options()[name].spec.get("default"))
