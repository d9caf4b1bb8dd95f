"""The machines of a rehearsal, as long as it lasts."""

import re
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.lab.down import take_down
from deploy.lab.rehearsal import INVENTORY, set_up
from deploy.lab.rehearsed_site import Rehearsed
from deploy.lab.state import find_lab
from deploy.run.cancellation import signals_cancel
from deploy.site.inventory import Site

_LONGEST_NAME = 30
_ENDINGS = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def staged(
    what: Rehearsed, lab: str, release: str, say: Callable[[str], None], *, is_kept: bool
) -> Iterator[Path]:
    """The inventory of the rehearsal, on machines that are there meanwhile; ``say`` hears what is done."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in _ENDINGS}
    directory = Path(tempfile.mkdtemp(prefix="deploy-rehearsal-"))
    try:
        stage = set_up(what, lab, directory, release, say)
        yield stage.site.inventory
    finally:
        with signals_cancel():  # what was begun is taken away whole
            if is_kept and (directory / INVENTORY).exists():
                say(f"kept: {directory / INVENTORY}")
                say(f"look around: deploy lab list; remove it: deploy lab down --name {lab} --delete-dir")
            elif (found := find_lab(lab)) and found.directory == directory:  # not another run's of this name
                take_down(lab, delete_directory=True)
                say(f"lab {lab} is gone")
            elif not any(directory.iterdir()):
                directory.rmdir()
        for number, handler in before.items():
            signal.signal(number, handler)


def default_name(site: Site, purpose: str = "rehearsal") -> str:
    """A lab's name after the site's directory."""
    words = re.sub(r"[^a-z0-9]+", "-", site.directory.name.lower()).strip("-")
    return f"{purpose}-{words}"[:_LONGEST_NAME].rstrip("-")
