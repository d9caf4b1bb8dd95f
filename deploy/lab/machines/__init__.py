"""The kinds of machines that a lab can have. Podman runs, counts and connects the machines of each."""

from deploy.errors import error
from deploy.lab.machines.containers import CONTAINERS
from deploy.lab.machines.kind import Kind
from deploy.lab.machines.uml import USER_MODE

DEFAULT = CONTAINERS.name
KINDS: dict[str, Kind] = {kind.name: kind for kind in (CONTAINERS, USER_MODE)}


def kind_named(name: str) -> Kind:
    """The kind of this name. Raises DeployError ``lab-machines``."""
    if name in KINDS:
        return KINDS[name]
    raise error(
        "lab-machines",
        f"{name!r} is no kind of machine",
        hint=f"type --machines with one of: {', '.join(KINDS)}",
    )
