"""The directory of a lab: an inventory with group_vars and, hidden beside them, its keys."""

import os
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.durable import replace_file
from deploy.lab import site_files
from deploy.lab.access import KeyDirectory
from deploy.lab.addresses import controller_number
from deploy.lab.inventory_edit import add_nodes, is_of_a_lab, missing_hosts, moved_hosts
from deploy.lab.ownership import hand_over, make_directory

_FILES = ("secrets.yml", "hardware.yml", "validation.yml")
_VARIABLES = tuple(
    f"group_vars/{name}" for name in site_files.group_vars(release="", gpus=0, cgroup_v1=False)
)
_OF_A_SITE = ("inventory.ini", "inventory.yml", *_FILES, *_VARIABLES, ".deploy")
"""An inventory, and what a lab would write itself: no other file says that a directory is a site's."""


@dataclass(frozen=True)
class LabDirectory:
    """The files of a lab; everything but ``.lab`` belongs to the admin once it is written."""

    path: Path

    @property
    def inventory(self) -> Path:
        """What to give to the other verbs."""
        return self.path / "inventory.ini"

    @property
    def keys(self) -> KeyDirectory:
        """The keys of the lab."""
        return KeyDirectory(self.path / ".lab")

    def of_a_site(self) -> list[str]:
        """What is here of a site that no lab made, as its inventory says."""
        return [] if is_of_a_lab(self._inventory_text) else self._present

    @property
    def is_a_labs(self) -> bool:
        """Whether a lab that was made here wrote all this: without its inventory, as its other files say."""
        if self._inventory_text.strip() or "inventory.yml" in self._present:
            return not self.of_a_site()
        return {*self._present} <= {"inventory.ini"} or any(
            site_files.MARK in _read(self.path / name)
            for name in ("validation.yml", *_VARIABLES)
            if (self.path / name).is_file()
        )

    @property
    def _inventory_text(self) -> str:
        return _read(self.inventory) if self.inventory.is_file() else ""

    @property
    def _present(self) -> list[str]:
        return [name for name in _OF_A_SITE if os.path.lexists(self.path / name)]

    def write(
        self,
        addresses: Mapping[str, str],
        *,
        release: str,
        gpus: int,
        cgroup_v1: bool,
        own_kernel: bool = False,
        monitoring: bool = False,
        package_cache: bool = False,
    ) -> None:
        """Write the inventory and group_vars, each only where there is none."""
        inventory = site_files.inventory(
            addresses, monitoring=monitoring, package_cache=package_cache, own_kernel=own_kernel
        )
        texts = {"inventory.ini": inventory}
        variables = site_files.group_vars(
            release=release,
            gpus=gpus,
            cgroup_v1=cgroup_v1,
            own_kernel=own_kernel,
            controllers=sum(controller_number(host) > 0 for host in addresses),
        )
        texts["validation.yml"] = site_files.THRESHOLDS
        texts |= {f"group_vars/{name}": text for name, text in variables.items()}
        for name, text in texts.items():
            file = self.path / name
            if not file.exists():
                make_directory(file.parent)
                replace_file(file, text, 0o644)
                hand_over(file)

    def missing(self, addresses: Mapping[str, str]) -> dict[str, str]:
        """The machines that the inventory does not name yet."""
        return missing_hosts(_read(self.inventory), addresses)

    def moved(self, addresses: Mapping[str, str]) -> str:
        """Lines of the inventory that must change because they give a machine another address."""
        return "\n".join(moved_hosts(_read(self.inventory), addresses))

    def add(self, addresses: Mapping[str, str]) -> None:
        """Add compute nodes to the inventory, replacing the file in one step."""
        changed = add_nodes(_read(self.inventory), addresses)
        before = self.inventory.stat()
        replace_file(self.inventory, changed)
        self.inventory.chmod(stat.S_IMODE(before.st_mode))
        os.chown(self.inventory, before.st_uid, before.st_gid)

    def forget_keys(self) -> None:
        """Remove the keys: nothing opens with them any more."""
        if self.keys.identity.exists() or self.keys.known_hosts.exists():
            shutil.rmtree(self.keys.path)

    def delete(self) -> list[str]:
        """Remove what the lab and runs against it wrote, nothing of a site; returns the names that remain."""
        if not self.is_a_labs:
            return self.names()
        shutil.rmtree(self.path / ".deploy", ignore_errors=True)
        # The inventory last, and before it the variables: they say that the rest is a lab's.
        for name in (*_FILES, *_VARIABLES, "inventory.ini"):
            (self.path / name).unlink(missing_ok=True)
        _remove_empty(self.path / "group_vars")
        _remove_empty(self.path)
        return self.names()

    def names(self) -> list[str]:
        """What is here."""
        return sorted(entry.name for entry in self.path.iterdir()) if self.path.is_dir() else []


def _remove_empty(directory: Path) -> None:
    if directory.is_dir() and not any(directory.iterdir()):
        directory.rmdir()


def _read(file: Path) -> str:
    with file.open(newline="") as handle:  # keeps the line ends as they are
        return handle.read()
