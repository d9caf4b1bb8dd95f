"""Boots and removes the machines of a Molecule scenario, the way the lab boots its own."""

import json
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from deploy.lab.boot import boot as start
from deploy.lab.image import ensure_image, start_command, system_options
from deploy.lab.machine import Machine, inspect_machine
from deploy.lab.podman import podman, succeeds

Platform = Mapping[str, str]
"""One entry of platforms in molecule.yml: the name of the machine and of its image."""

# What is not the subject of a scenario need not be installed in each: by the word after the release in a tag.
PREPARED: Mapping[str, tuple[str, ...]] = {
    "": (),
    "slurm": ("munge", "slurmctld", "slurmd", "slurm-client"),
}


def network_of(scenario: str) -> str:
    """Each scenario has a network of its own, so that scenarios can run side by side."""
    return f"molecule-{scenario}"


def run_command(machine: Machine, network: str, platform: Platform) -> list[str]:
    """The podman arguments that boot one machine."""
    name = platform["name"]
    return [
        *("--runtime", machine.runtime),
        *("run", "--detach", "--name", name, "--hostname", name, "--network", network),
        *system_options(machine),
        *("--ulimit", f"nofile={machine.open_files}:{machine.open_files}"),
        *("--ulimit", f"nproc={machine.processes}:{machine.processes}"),
        *(platform["image"], *start_command(machine)),
    ]


def create(scenario: str, platforms: Sequence[Platform]) -> None:
    """Boots all machines at once, anew, and waits until each has started its services."""
    destroy(scenario, platforms)
    machine = inspect_machine()
    for image in {platform["image"] for platform in platforms}:
        release, _, prepared = image.rpartition(":")[2].partition("-")
        ensure_image(release, name=image, packages=PREPARED[prepared])
    network = network_of(scenario)
    podman("network", "create", network)

    def boot(platform: Platform) -> None:
        start(platform["name"], *run_command(machine, network, platform))
        # The answer may be "degraded": what a scenario needs is for its verify to say.
        succeeds("exec", platform["name"], "systemctl", "is-system-running", "--wait")

    with ThreadPoolExecutor() as pool:
        list(pool.map(boot, platforms))


def destroy(scenario: str, platforms: Sequence[Platform]) -> None:
    """Removes the machines and their network; what is not there is no mistake."""
    for platform in platforms:
        podman("rm", "--force", "--ignore", "--time", "0", "--volumes", platform["name"])
    podman("network", "rm", "--force", network_of(scenario))


if __name__ == "__main__":
    {"create": create, "destroy": destroy}[sys.argv[1]](sys.argv[2], json.loads(sys.argv[3]))
