"""Boots and removes the machines of a Molecule scenario, the way the lab boots its own."""

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from deploy.lab.boot import boot as start
from deploy.lab.image import ensure_image, label_of, start_command, system_options
from deploy.lab.locks import exclusive
from deploy.lab.machine import Machine, inspect_machine
from deploy.lab.podman import podman, query, succeeds

Platform = Mapping[str, str]
"""One entry of platforms in molecule.yml: the name of the machine and of its image."""

# What is not the subject of a scenario need not be installed in each: by the word after the release in a tag.
PREPARED: Mapping[str, tuple[str, ...]] = {
    "": (),
    "slurm": ("munge", "slurmctld", "slurmd", "slurm-client"),
}
_MADE_FROM = "deploy.made-from"


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


def ensure(image: str, machine: Machine) -> None:
    """Builds an image: the lab's of the release in its tag, and the packages that the rest of it means."""
    tag = image.rpartition(":")[2]
    release, _, prepared = tag.partition("-")
    base = ensure_image(release)
    if not prepared:
        return
    packages = " ".join(PREPARED[prepared])
    wanted = f"{query('image', 'inspect', base)[0]['Id']} {packages}"
    with exclusive(f"image-{tag}"), tempfile.TemporaryDirectory(prefix="molecule-") as place:
        if label_of(image, _MADE_FROM) == wanted:
            return
        install = "DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends"
        # The last command leaves apt's index ready.
        commands = f"{install} {packages} && apt-get clean && apt-get check -qq"
        Path(place, "Containerfile").write_text(
            f'FROM {base}\nRUN {commands}\nLABEL {_MADE_FROM}="{wanted}"\n'
        )
        limits = [f"--ulimit=nofile={machine.open_files}", f"--ulimit=nproc={machine.processes}"]
        podman("build", "--runtime", machine.runtime, *limits, "--tag", image, place)


def create(scenario: str, platforms: Sequence[Platform]) -> None:
    """Boots all machines at once, anew, and waits until each has started its services."""
    destroy(scenario, platforms)
    machine = inspect_machine()
    for image in {platform["image"] for platform in platforms}:
        ensure(image, machine)
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


def chosen(platforms: Sequence[Platform]) -> list[Platform]:
    """The machine that Molecule was asked for alone, else all; Molecule itself narrows its inventory only."""
    only = os.environ.get("MOLECULE_PLATFORM_NAME")
    return [platform for platform in platforms if only in {None, "", platform["name"]}]


if __name__ == "__main__":
    {"create": create, "destroy": destroy}[sys.argv[1]](sys.argv[2], chosen(json.loads(sys.argv[3])))
