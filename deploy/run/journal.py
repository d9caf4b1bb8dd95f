"""What happened, kept beside the inventory: one directory per run, one line per event."""

import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from deploy.errors import error
from deploy.run.events import Event, from_json, to_json

_KEPT_RUNS = 50


def state_directory(site_directory: Path) -> Path:
    """``.deploy`` beside the inventory, private. Raises DeployError ``site-not-writable``."""
    path = site_directory / ".deploy"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        (path / "runs").mkdir(mode=0o700, exist_ok=True)
    except OSError as problem:
        raise error(
            "site-not-writable",
            f"the journal of a run is kept beside the inventory: {problem.strerror}",
            where=str(site_directory),
            hint="run as a user who may write there, or copy the inventory to your own directory",
        ) from None
    return path


class Journal:
    """The journal of the run that is going on."""

    def __init__(self, path: Path, file: TextIO, metadata: Mapping[str, Any]) -> None:
        self.path = path
        self._file = file
        self._metadata = dict(metadata)

    @classmethod
    def create(cls, site_directory: Path, metadata: Mapping[str, Any]) -> "Journal":
        """A new run directory; the oldest ones beyond fifty go away."""
        runs = state_directory(site_directory) / "runs"
        name = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) + "-" + secrets.token_hex(2)
        path = runs / name
        path.mkdir(mode=0o700)
        for old in sorted(runs.iterdir())[:-_KEPT_RUNS]:
            shutil.rmtree(old, ignore_errors=True)
        file = os.fdopen(os.open(path / "events.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w")
        journal = cls(path, file, {"id": name, "started": time.time(), **metadata})
        journal._write_metadata()
        _remember(path)
        return journal

    def append(self, event: Event) -> None:
        """Adds an event; it is in the file when this returns."""
        self._file.write(json.dumps(to_json(event)) + "\n")
        self._file.flush()

    def finish(self, *, interrupted: bool, code: int) -> None:
        """Says that the run ended rather than vanished; ``code`` is Ansible's exit code."""
        self._file.close()
        self._metadata |= {"ended": time.time(), "interrupted": interrupted, "code": code}
        self._write_metadata()

    def _write_metadata(self) -> None:
        sibling = self.path / ".run.json.new"
        sibling.write_text(json.dumps(self._metadata, indent=1), encoding="utf-8")
        sibling.replace(self.path / "run.json")


@dataclass(frozen=True)
class RecordedRun:
    """A run as its journal tells it."""

    path: Path
    metadata: Mapping[str, Any]

    @property
    def interrupted(self) -> bool:
        """Whether it was stopped, or vanished without a last word."""
        return bool(self.metadata.get("interrupted", "ended" not in self.metadata))

    def events(self) -> Iterator[Event]:
        """Its events in order; a last line that a crash cut short is left out."""
        with (self.path / "events.jsonl").open(encoding="utf-8") as file:
            for line in file:
                try:
                    yield from_json(json.loads(line))
                except (ValueError, TypeError, KeyError):
                    return


def recorded_runs(site_directory: Path) -> list[RecordedRun]:
    """All runs of a site, the oldest first."""
    runs = site_directory / ".deploy" / "runs"
    return [_read(path) for path in sorted(runs.iterdir())] if runs.is_dir() else []


def last_run_of_user() -> RecordedRun | None:
    """The run that this user started last, on any site."""
    pointer = _pointer()
    if not pointer.is_file():
        return None
    path = Path(pointer.read_text(encoding="utf-8"))
    return _read(path) if path.is_dir() else None


def _read(path: Path) -> RecordedRun:
    try:
        metadata = json.loads((path / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        metadata = {"id": path.name}
    return RecordedRun(path, metadata)


def _pointer() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "deploy" / "last-run"


def _remember(path: Path) -> None:
    pointer = _pointer()
    try:
        pointer.parent.mkdir(parents=True, exist_ok=True)
        pointer.write_text(str(path), encoding="utf-8")
    except OSError:
        return  # Without a home the run still counts; only `deploy report` without an inventory misses it.
