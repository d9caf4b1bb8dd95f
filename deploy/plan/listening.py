"""Which roles' daemons listen on which hosts, as the roles declare it."""

from collections.abc import Collection, Mapping

from deploy.plan.catalog import PHASES
from deploy.plan.declarations import listening, listening_names
from deploy.site.hardware import Hardware
from deploy.site.inventory import Site

Members = Mapping[str, Collection[str]]
"""The names of the hosts of every phase."""
Listeners = Mapping[str, tuple[str, ...]]
"""By host the roles that have something listen there on their port, and the names of their further ports."""


def members_of_phases(site: Site, contract: Mapping[str, Hardware]) -> Members:
    """The hosts of every phase, as far as their hardware is known."""
    return {phase.name: frozenset(host.name for host in phase.members(site, contract)) for phase in PHASES}


def listeners(members: Members) -> Listeners:
    """The roles in the order of their phases; hosts on which none of them listens are not there."""
    found: dict[str, dict[str, None]] = {}
    for phase in PHASES:
        roles = [name for role in phase.roles for name in listening_names(role)]
        for host in members[phase.name] if roles else ():
            found.setdefault(host, {}).update(dict.fromkeys(roles))
    return {host: tuple(roles) for host, roles in found.items()}


def jobs() -> dict[str, tuple[str, str]]:
    """By scrape job the phase whose hosts are asked, and the role whose port that is."""
    return {
        declared.job: (phase.name, name)
        for phase in PHASES
        for role in phase.roles
        for name in listening_names(role)
        if (declared := listening(name)) and declared.job
    }
