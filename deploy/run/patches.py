"""What deploy changes inside Ansible and mitogen, to make runs faster; none of it is needed.

Where a part is not as it is known here, it is left as it is, and a notice says so.
"""

import base64
import json
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any


@contextmanager
def patch(what: str) -> Iterator[None]:
    """What is done inside is a patch; a failure ends it, and is told instead of raised."""
    try:
        yield
    except Exception as problem:  # noqa: BLE001 - whatever it is, Ansible works without the patch
        why = f"{type(problem).__name__}: {' '.join(str(problem).split())}"
        notice(f"{what} does not fit {_installed()} ({why}): this run goes without it, and takes longer")


def replace(holder: object, name: str, new: object) -> None:
    """Put something in the place of what is there; raises AttributeError where nothing is."""
    getattr(holder, name)
    setattr(holder, name, new)


def notice(text: str) -> None:
    """Has deploy say it, as a warning of this run."""
    tell({"event": "warning", "uuid": str(uuid.uuid4())}, text)


def tell(event: Mapping[str, object], text: str = "") -> None:
    """An event as ansible-runner's callback plugin writes it: its beginning, what it prints, its end."""
    sys.stdout.write(_framed(event) + text + _framed({}))
    sys.stdout.flush()


def _framed(event: Mapping[str, Any]) -> str:
    code = base64.b64encode(json.dumps(event).encode()).decode()
    return f"\x1b[K{code}\x1b[{len(code)}D\x1b[K"


def _installed() -> str:
    return ", ".join(f"{name} {_version(name)}" for name in ("ansible-core", "mitogen"))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(none)"
