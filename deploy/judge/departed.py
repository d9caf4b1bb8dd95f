"""Hosts that the cluster had and the inventory has no more, and what they still hold."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deploy.run.events import LeftOver
from deploy.site.inventory import Host, Site

HINT = (
    "undo there what it was for (in a file that others need, too, only our lines), or declare it again; "
    "to keep it: rm /var/lib/deploy/left.json   (there)"
)
"""What to do about things that are left on a host."""
_KEPT = (
    *("ansible_connection", "ansible_host", "ansible_ssh_host", "ansible_port", "ansible_ssh_port"),
    *("ansible_user", "ansible_ssh_user", "ansible_python_interpreter"),
)
"""What is remembered of how a host is reached: no secret, and no path on the admin's own machine."""
_LIKE_OTHERS = (
    *("ansible_ssh_executable", "ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args"),
    *("ansible_ssh_private_key_file", "ansible_private_key_file", "ansible_become_method"),
)
"""What a host that left is assumed to share with those that it shared a group with."""


@dataclass(frozen=True)
class Departed:
    """A host that left: what it ``holds`` of the cluster, or ``why`` it could not be asked."""

    name: str
    holds: tuple[str, ...] = ()
    why: str = ""

    @property
    def is_gone(self) -> bool:
        """Whether nothing is left of it."""
        return not (self.holds or self.why)

    @property
    def things(self) -> tuple[str, ...]:
        """What there is to say of it."""
        return self.holds or (f"nobody knows what, because it cannot be asked: {self.why}",)

    def hint(self, inventory: str) -> str:
        """What to type, with the inventory as one would type it."""
        lost = "" if self.holds else "   (--gone, when the machine is no more)"
        return f"deploy node remove {inventory} {self.name}{lost}"


def left_over_events(
    left: Mapping[str, tuple[str, ...]], departed: Iterable[Departed], inventory: str
) -> Iterator[LeftOver]:
    """What hosts have that the inventory does not say any more, by host what is ``left`` on it."""
    now = time.time()
    for host in departed:
        if not host.is_gone:
            yield LeftOver(now, host.name, host.things, host.hint(inventory), has_departed=True)
    for name, things in left.items():
        if things:
            yield LeftOver(now, name, things, HINT)


def remembered(hosts: Iterable[Host]) -> dict[str, dict[str, Any]]:
    """What controllers keep of hosts, by name: they are to be asked when the inventory has them no more."""
    return {
        host.name: {
            "connection": {name: host.connection[name] for name in _KEPT if name in host.connection},
            "groups": sorted(host.groups),
        }
        for host in hosts
    }


def departed_hosts(site: Site, known: Mapping[str, Mapping[str, Any]]) -> dict[str, Host]:
    """The remembered hosts that are not of the cluster any more, reached as their like are.

    A machine that only has another name now is still there.
    """
    members = {host.name for host in site.cluster}
    addresses = {_address(host.name, host.connection) for host in site.cluster}
    return {
        name: _host(site, name, entry)
        for name, entry in known.items()
        if name not in members and _address(name, entry["connection"]) not in addresses
    }


def _address(name: str, connection: Mapping[str, Any]) -> tuple[str, str]:
    host = connection.get("ansible_host") or connection.get("ansible_ssh_host") or name
    return str(host), str(connection.get("ansible_port") or connection.get("ansible_ssh_port") or 22)


def _host(site: Site, name: str, entry: Mapping[str, Any]) -> Host:
    groups = frozenset(entry["groups"])
    like = max(site.cluster, key=lambda host: len(host.groups & groups))
    shared = {name: like.connection[name] for name in _LIKE_OTHERS if name in like.connection}
    connection = {**shared, **entry["connection"]}
    return Host(name, connection, groups, connection=connection)
