"""What deploy changes inside Ansible and mitogen, to make runs faster; none of it is needed.

Where a part is not as it is known here, it is left as it is, and a notice says so. DEPLOY_WITHOUT leaves out
those that it names, separated by commas: to measure what they are worth, or to find the one that is at fault.
"""

import base64
import json
import os
import sys
import uuid
from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

WITHOUT = "DEPLOY_WITHOUT"
_Result = TypeVar("_Result")


class Patch(StrEnum):
    """Each of them, as messages call it."""

    COMPILED_TEMPLATES = "keeping compiled templates"
    ONE_ANSIBLE = "one Ansible for several playbooks"
    MITOGEN = "mitogen"
    NO_KUBECTL = "mitogen without kubectl"
    EVERY_CPU = "mitogen on every CPU"
    ONE_PYTHON = "mitogen's way to root by one Python"
    SILENT_HOSTS = "mitogen giving up hosts that say nothing for a minute"
    LOST_HOSTS = "mitogen calling hosts unreachable that are lost in a task"
    COMPILED_ONCE = "files of modules that mitogen compiles once"
    NOT_FORKED = "modules that mitogen runs without a process of their own"
    SKIPPED_HERE = "tasks that are skipped without a process"
    LOADED_ONCE = "plugins that are loaded once for all processes"

    @property
    def id(self) -> str:
        """As DEPLOY_WITHOUT names it."""
        return self.name.lower().replace("_", "-")


def apply(which: Patch, change: Callable[[], _Result]) -> _Result | None:
    """What a patch returns; None where it is not wanted, or fails, which is told instead of raised."""
    if which.id in os.environ.get(WITHOUT, "").split(","):
        notice(f"{which} is left out, as {WITHOUT} says: this run may take longer")
        return None
    try:
        return change()
    except Exception as problem:  # noqa: BLE001 - whatever it is, Ansible works without the patch
        why = f"{type(problem).__name__}: {' '.join(str(problem).split())}"
        notice(f"{which} does not fit {_installed()} ({why}): this run goes without it, and may take longer")
        return None


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
