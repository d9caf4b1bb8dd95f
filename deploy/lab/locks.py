"""One at a time: two labs may share an image and a machine, but not the moment that makes them."""

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PLACE = Path("/run/deploy-lab")
"""Root's alone: whoever can open a lock's file can hold it."""


@contextmanager
def exclusive(subject: str) -> Iterator[None]:
    """Wait until no other process on this machine holds the lock named ``subject``, as ``lab-demo``."""
    PLACE.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(PLACE / f"{subject}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.stderr.write(
                f"deploy: waiting for another deploy that is at {subject.replace('-', ' ', 1)}\n"
            )
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
