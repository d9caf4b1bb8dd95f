"""Addresses as they are written."""

import ipaddress


def is_ip(text: str) -> bool:
    """Whether a text is an IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
