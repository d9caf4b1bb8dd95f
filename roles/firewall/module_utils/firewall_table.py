"""The cluster's table of nftables: what it accepts, and its text. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

NAME = "inet deploy"

Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]  # noqa: UP007 - hosts may have Python 3.9
_FAMILIES = {4: "ip", 6: "ip6"}


@dataclass(frozen=True)
class Service:
    """Ports that some networks may reach."""

    protocol: str
    ports: tuple[str, ...]
    sources: tuple[Network, ...]

    def admits(self, address: str, port: int) -> bool:
        """Whether a connection from an address is accepted."""
        return any(_has(ports, port) for ports in self.ports) and _within(address, self.sources)


@dataclass(frozen=True)
class Table:
    """Everything that a host accepts from others."""

    cluster: tuple[Network, ...]
    services: tuple[Service, ...]
    guarded: tuple[Service, ...] = ()
    """What the cluster's hosts reach only where they are named, too."""

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Table:
        """The table of a host. Raises ValueError for what is no address, network or port."""
        ssh = Service("tcp", tuple(map(str, parameters["ssh_ports"])), networks(parameters["ssh_from"]))
        opened = [_service(entry, ["0.0.0.0/0", "::/0"]) for entry in parameters["opened"]]
        guarded = [_service(entry, []) for entry in parameters["guarded"]]
        return cls(networks(parameters["cluster"]), (ssh, *opened), tuple(guarded))

    def admits(self, address: str, port: int) -> bool:
        """Whether a TCP connection from an address to a port of this host is accepted."""
        named = (*self.services, *self.guarded)
        if any(service.admits(address, port) for service in named if service.protocol == "tcp"):
            return True
        is_guarded = any(_has(ports, port) for service in self.guarded for ports in service.ports)
        return not is_guarded and _within(address, self.cluster)

    def text(self) -> str:
        """The file for nft: takes the place of the table that is there, in one transaction."""
        body = "".join(f"        {rule}\n" for rule in self._rules())
        return (
            "# Made by deploy; changes made here are undone by the next run.\n"
            f"table {NAME}\ndelete table {NAME}\n"
            f"table {NAME} {{\n    chain input {{\n"
            f"        type filter hook input priority filter; policy drop;\n{body}    }}\n}}\n"
        )

    def _rules(self) -> Iterator[str]:
        yield "ct state established,related accept"
        yield 'iifname "lo" accept'
        for service in (*self.services, *self.guarded):
            for source in _sources(service.sources):
                yield f"{source}{service.protocol} dport {{ {', '.join(service.ports)} }} accept"
        for service in self.guarded:
            ports = ", ".join(service.ports)
            yield f"{service.protocol} dport {{ {ports} }} reject with icmpx admin-prohibited"
        for source in _sources(self.cluster):
            yield f"{source}accept"
        # By number, as a small system has no names for them: ICMP of both families.
        yield "meta l4proto { 1, 58 } accept"
        # Addresses by DHCP: its answers come from where nothing was asked, as the kernel sees it.
        yield "udp sport 67 udp dport 68 accept"
        yield "udp sport 547 udp dport 546 accept"
        # An answer instead of silence: who is refused knows at once.
        yield "reject with icmpx admin-prohibited"


def _service(entry: Mapping[str, Any], everybody: Sequence[str]) -> Service:
    """An entry of the role's variables; ``everybody`` is meant where it names nobody."""
    ports = sorted(map(_ports, entry["ports"]), key=lambda text: int(text.partition("-")[0]))
    return Service(entry.get("protocol") or "tcp", tuple(ports), networks(entry.get("from") or everybody))


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Addresses and networks, those within others left out."""
    found = [ipaddress.ip_network(text.strip(), strict=False) for text in texts]
    four = [network for network in found if isinstance(network, ipaddress.IPv4Network)]
    six = [network for network in found if isinstance(network, ipaddress.IPv6Network)]
    return (*ipaddress.collapse_addresses(four), *ipaddress.collapse_addresses(six))


def _ports(text: object) -> str:
    """A port, or a range of them."""
    numbers = [int(part) for part in str(text).split("-", 1)]
    if not 0 < numbers[0] <= numbers[-1] <= 65535:  # noqa: PLR2004
        message = f"{text!r} is neither a port nor a range of ports"
        raise ValueError(message)
    return "-".join(map(str, numbers))


def _has(ports: str, port: int) -> bool:
    first, _, last = ports.partition("-")
    return int(first) <= port <= int(last or first)


def _within(address: str, sources: Sequence[Network]) -> bool:
    # sshd reports an IPv4 client on an IPv6 socket in this form.
    number = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(number, "ipv4_mapped", None)
    return any((mapped or number) in network for network in sources)


def _sources(sources: Sequence[Network]) -> Iterator[str]:
    """The conditions on where a packet comes from, one for each family; none where it may be anywhere."""
    for version, family in _FAMILIES.items():
        own = [network for network in sources if network.version == version]
        if any(network.prefixlen == 0 for network in own):
            yield f"meta nfproto ipv{version} "
        elif own:
            yield f"{family} saddr {{ {', '.join(map(_written, own))} }} "


def _written(network: Network) -> str:
    return str(network.network_address) if network.prefixlen == network.max_prefixlen else str(network)
