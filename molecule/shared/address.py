"""Prints the address of a scenario's machine."""

import subprocess
import sys

_SHOWN = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"


def address(machine: str) -> str:
    """What podman gave it; a guest takes it over."""
    command = ["podman", "inspect", "--format", _SHOWN, machine]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.stdout.write(address(sys.argv[1]))
