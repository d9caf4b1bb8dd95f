"""Addresses, networks and names of hosts as they are written."""

import ipaddress
import re

_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})"
_HOST_NAME = re.compile(rf"(?=.*[A-Za-z]){_LABEL}(\.{_LABEL})*\.?")
_NUMBER = re.compile(r"\d+|0[xX][0-9A-Fa-f]*")


def is_ip(text: str) -> bool:
    """Whether a text is an IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_of_a_host(text: str) -> bool:
    """Whether an IP address can be one machine's, as others of its network reach it."""
    if not is_ip(text):
        return False
    address = ipaddress.ip_address(text)
    is_broadcast = text == "255.255.255.255"
    # Without its interface, which is another one on each host, it says nothing.
    is_without_interface = address.version == 6 and address.is_link_local  # noqa: PLR2004
    return not (address.is_multicast or address.is_unspecified or is_broadcast or is_without_interface)


def is_host(text: str) -> bool:
    """Whether a text is a host's address, or a name that may be one: its last part is no number."""
    if is_of_a_host(text):
        return True
    last = text.rstrip(".").rpartition(".")[2]
    return not is_ip(text) and bool(_HOST_NAME.fullmatch(text)) and not _NUMBER.fullmatch(last)


def is_network(text: str) -> bool:
    """Whether a text is an address or a network."""
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True
