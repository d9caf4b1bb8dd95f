"""One at a time: two labs may share an image and a machine, but not the moment that makes them."""

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive(subject: str) -> Iterator[None]:
    """Wait until no other process on this machine holds the lock named ``subject``."""
    shared = Path("/run/lock")
    directory = shared if shared.is_dir() else Path(tempfile.gettempdir())
    with (directory / f"deploy-lab-{subject}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
