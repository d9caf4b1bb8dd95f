"""Networks that a lab must keep away from: what this machine reaches, what podman gave to others."""

import json
import subprocess
from collections.abc import Iterator
from ipaddress import IPv4Network

from deploy.lab.podman import query


def taken_networks() -> list[IPv4Network]:
    """Every IPv4 network in this machine's routes and in podman's networks."""
    routes = subprocess.run(["ip", "-json", "-4", "route"], capture_output=True, text=True, check=False)
    return [*routed(routes.stdout), *_podman_networks()]


def routed(answer: str) -> Iterator[IPv4Network]:
    """The destinations in what ``ip -json route`` printed."""
    for route in json.loads(answer or "[]"):
        if route["dst"] != "default":
            yield IPv4Network(route["dst"], strict=False)


def _podman_networks() -> Iterator[IPv4Network]:
    for network in query("network", "ls"):
        for subnet in network.get("subnets") or []:
            if ":" not in subnet["subnet"]:
                yield IPv4Network(subnet["subnet"], strict=False)
