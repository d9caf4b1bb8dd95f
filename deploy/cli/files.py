"""Files that a user names for a result."""

import os
from pathlib import Path

import typer

from deploy.durable import write_private
from deploy.errors import DeployError, error


def refuse_unwritable(path: Path | None) -> None:
    """Before minutes are spent on what could not be written down.

    Raises DeployError ``file-not-writable``.
    """
    if path is None or path == Path("-"):
        return
    if path.is_dir() or not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise not_writable(path, "is a directory" if path.is_dir() else "it or its directory is not writable")


def not_writable(path: Path, why: str) -> DeployError:
    """The error ``file-not-writable``."""
    return error("file-not-writable", f"cannot be written: {why}", where=str(path), hint="name another file")


def write(path: Path, text: str) -> None:
    """For the user alone; `-` is the terminal. Raises DeployError ``file-not-writable``."""
    if path == Path("-"):
        typer.echo(text, nl=False)
        return
    try:
        write_private(path, text)
    except OSError as problem:
        raise not_writable(path, problem.strerror or str(problem)) from None
