"""One bad site: the healthy one of tests/unit/site/sites.py with something wrong, and what must be said."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.unit.site.sites import INVENTORY, write_site

ALL = "group_vars/all.yml"
MASTER = "group_vars/slurm-master.yml"
NODES = "group_vars/slurm-node.yml"


@dataclass(frozen=True)
class BadSite:
    """``expected``: every finding without its hint, as it is printed, in the order of the report.

    ``edits`` are replacements in the healthy inventory, ``inventory`` takes its place as ``inventory_name``.
    """

    title: str
    expected: tuple[str, ...]
    edits: tuple[tuple[str, str], ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    binary: Mapping[str, bytes] = field(default_factory=dict)
    modes: Mapping[str, int] = field(default_factory=dict)
    inventory: str = INVENTORY
    inventory_name: str = "inventory.ini"

    def write(self, directory: Path) -> Path:
        """Writes it; returns the inventory."""
        text = self.inventory
        for old, new in self.edits:
            assert old in text
            text = text.replace(old, new, 1)
        path = write_site(directory, text, self.files)
        for name, content in self.binary.items():
            (directory / name).write_bytes(content)
        for name, mode in self.modes.items():
            (directory / name).chmod(mode)
        return path.rename(directory / self.inventory_name)


def variables(title: str, text: str, *expected: str, file: str = ALL) -> BadSite:
    """A site with these variables in one file."""
    return BadSite(title, expected, files={file: text})
