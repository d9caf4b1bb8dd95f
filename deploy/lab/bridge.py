"""The hardware address of a lab's bridge, which would else change as machines come and go.

By default a bridge has the lowest address of its ports: one port less, and what machines send to this host
goes to an address that nobody has any more, for a minute or longer. Netavark 1.9 gives the bridge an address
of its own (https://github.com/containers/netavark/pull/833); that of Debian 12 does not.
"""

import json
import subprocess
from ipaddress import IPv4Address
from pathlib import Path

from deploy.lab.addresses import mac_address
from deploy.lab.podman import podman

_INTERFACES = Path("/sys/class/net")


def keep_address(container: str) -> None:
    """Gives the bridge of a container that runs an address of its own; one that has it keeps it."""
    of_networks = "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}"
    for address in podman("inspect", "--format", of_networks, container).split():
        for way in _ways_to(address):
            # A container that has stopped meanwhile has no bridge; the way may then be this host's own.
            if "gateway" not in way and (_INTERFACES / way["dev"] / "bridge").exists():
                own = mac_address(IPv4Address(way["prefsrc"]))
                subprocess.run(["ip", "link", "set", "dev", way["dev"], "address", own], check=False)


def _ways_to(address: str) -> list[dict[str, str]]:
    answer = subprocess.run(
        ["ip", "-json", "-4", "route", "get", address], capture_output=True, text=True, check=False
    )
    return list(json.loads(answer.stdout or "[]"))
