"""listing.py under way: Ansible's imports take longer than anything else that reading an inventory does."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

from deploy.place import private_place
from deploy.site.ansible_settings import reading_environment

LISTING = Path(__file__).with_name("listing.py")

Context = Callable[[], Mapping[str, Any]] | None
"""Gives what templates may mention (see resolution.py); it is asked for while Ansible reads the inventory."""


class ListingProcess:
    """Answers for one inventory. A context manager; it may be started before anybody knows for which."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._program: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        # A lookup of an encrypted file is decrypted there.
        place = self._stack.enter_context(private_place())
        self._program = subprocess.Popen(
            [sys.executable, "-I", str(LISTING)],
            env=listing_environment() | {"ANSIBLE_LOCAL_TEMP": str(place)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        self._stack.enter_context(self._program)
        # Whoever has no question for it does not wait until it has found that out itself.
        self._stack.callback(self._program.kill)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def is_waiting(self) -> bool:
        """Whether it was started, and nobody has asked it anything."""
        return bool(self._program and self._program.stdin and not self._program.stdin.closed)

    def answer(self, arguments: list[str], context: Context) -> tuple[str, str]:
        """What it prints, and what Ansible says beside."""
        assert self._program  # noqa: S101 - for mypy
        assert self._program.stdin  # noqa: S101 - for mypy
        # It reads the inventory while the context is put together. Unbuffered, so that nothing is left to be
        # written to one that has ended.
        with suppress(BrokenPipeError):
            os.write(self._program.stdin.fileno(), first_line(arguments).encode())
        return self._program.communicate(rest(context))


def first_line(arguments: list[str]) -> str:
    """The first line of listing.py's standard input."""
    return json.dumps(arguments) + "\n"


def rest(context: Context) -> str:
    """What comes after it."""
    return json.dumps(context() if context else None, default=str)


def listing_environment() -> dict[str, str]:
    """What listing.py is started with: Ansible as the project wants it, wherever it is started."""
    return reading_environment(os.environ)
