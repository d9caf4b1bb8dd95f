"""Takes a lab away, so that nothing of it is left."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from deploy.lab.directory import LabDirectory
from deploy.lab.image import drop_old_images
from deploy.lab.locks import exclusive
from deploy.lab.machine import inspect_machine
from deploy.lab.podman import podman, query
from deploy.lab.state import LAB, Lab, container_name, need_lab, network_name


@dataclass(frozen=True)
class Removal:
    """What was removed, and what was left to the admin."""

    lab: Lab
    directory: Path
    kept: tuple[str, ...]
    is_of_a_site: bool
    """Whether the directory was left as it is, as one of a site that no lab made."""


def take_down(name: str, *, delete_directory: bool) -> Removal:
    """Remove machines, home volume, network and keys; the inventory only when asked to."""
    inspect_machine()
    with exclusive(f"lab-{name}"):
        lab = need_lab(name)
        if lab.hosts:
            containers = [container_name(name, host.name) for host in lab.hosts]
            podman("rm", "--force", "--time", "0", *containers)
        if volumes := [volume["Name"] for volume in query("volume", "ls", "--filter", f"label={LAB}={name}")]:
            podman("volume", "rm", *volumes)
        directory = LabDirectory(lab.directory)
        directory.forget_keys()
        is_of_a_site = not lab.is_rehearsal and not directory.is_a_labs
        if delete_directory and lab.is_rehearsal:
            shutil.rmtree(lab.directory, ignore_errors=True)  # made for the rehearsal alone
            kept = []
        elif delete_directory:
            kept = directory.delete()
        else:
            kept = directory.names()
        # After all that is the lab's: as long as it is there, down can be repeated.
        podman("network", "rm", network_name(name))
        drop_old_images()
    return Removal(lab, lab.directory, tuple(kept), is_of_a_site=is_of_a_site)
