"""inventory/example: what ``deploy init`` makes, but for the secrets."""

from collections.abc import Iterator
from pathlib import Path

from deploy.site.starter import Machines, starter_files

_MACHINES = Machines("ctl1", nodes=("node1", "node2"), logins=("login1",))


def outputs(root: Path) -> Iterator[tuple[Path, str]]:
    """The files of the example site."""
    for name, text in starter_files(_MACHINES, user="admin").items():
        yield root / "inventory" / "example" / name, text
