"""What happened, kept beside the inventory: one directory per run, one line per event."""

import json
import os
import re
import secrets
import shutil
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from deploy.durable import replace_file
from deploy.errors import DeployError, ExitCode, error, internal_error
from deploy.run.events import Event, RawEvent, from_json, to_json

_KEPT_RUNS = 50
_METADATA = "run.json"
_EVENTS = "events.jsonl"
_TRACEBACK = "traceback.txt"
# Short options may stand together; what is behind one that takes a value is its value.
_WITH_VALUES = "filrtu"
_IN_SHORT_OPTIONS = re.compile(rf"(-[^-e{_WITH_VALUES}]*e)(.*)", re.DOTALL)


def state_directory(site_directory: Path) -> Path:
    """``.deploy`` beside the inventory, private. Raises DeployError ``site-not-writable``."""
    path = site_directory / ".deploy"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        (path / "runs").mkdir(mode=0o700, exist_ok=True)
    except OSError as problem:
        raise _not_writable(site_directory, problem) from None
    return path


def _not_writable(site_directory: Path, problem: OSError) -> DeployError:
    return error(
        "site-not-writable",
        f"the journal of a run is kept beside the inventory: {problem.strerror}",
        where=str(site_directory),
        hint="run as a user who may write there, or copy the inventory to your own directory",
    )


def recordable(arguments: Sequence[str]) -> list[str]:
    """A command line as it may be recorded: what extra variables are set to stays out."""
    recorded: list[str] = []
    hides_next = False
    for argument in arguments:
        option, is_joined, value = argument.partition("=")
        if hides_next:
            recorded.append(_without_values(argument))
            hides_next = False
        elif argument == "--extra-vars":
            recorded.append(argument)
            hides_next = True
        elif option == "--extra-vars" and is_joined:
            recorded.append(f"{option}={_without_values(value)}")
        elif found := _IN_SHORT_OPTIONS.match(argument):
            recorded.append(found[1] + (_without_values(found[2]) if found[2] else ""))
            hides_next = not found[2]
        else:
            recorded.append(argument)
    return recorded


def _without_values(text: str) -> str:
    return text if text.startswith("@") else "(not recorded)"


@contextmanager
def _said_as_such(where: Path) -> Iterator[None]:
    """What the system has against writing there is the admin's to put right, and no fault of deploy."""
    try:
        yield
    except OSError as problem:
        raise error(
            "journal-not-written",
            f"the run was stopped because it could not be recorded: {problem.strerror}",
            where=str(where),
            hint="make room there, then type the same again: running again is safe",
            exit_code=ExitCode.INTERNAL,
        ) from None


class Journal:
    """The journal of the run that is going on."""

    def __init__(self, path: Path, file: TextIO, metadata: Mapping[str, Any]) -> None:
        self.path = path
        self._file = file
        self._metadata = dict(metadata)

    @classmethod
    def create(cls, site_directory: Path, metadata: Mapping[str, Any]) -> "Journal":
        """A new run directory; the oldest ones beyond fifty go away.

        Of ``metadata``, ``hosts`` names the hosts of the run and ``arguments`` the command line; ``id`` and
        ``started`` are added. Raises DeployError ``site-not-writable``, ``journal-not-written``.
        """
        with _said_as_such(site_directory):
            return cls._create(site_directory, metadata)

    @classmethod
    def _create(cls, site_directory: Path, metadata: Mapping[str, Any]) -> "Journal":
        runs = state_directory(site_directory) / "runs"
        started = time.time()
        at = datetime.fromtimestamp(started, UTC)
        # Runs are ordered by their names, and two may begin within a second.
        name = at.strftime("%Y%m%dT%H%M%S.%fZ") + "-" + secrets.token_hex(2)
        path = runs / name
        path.mkdir(mode=0o700)
        for old in sorted(runs.iterdir())[:-_KEPT_RUNS]:
            shutil.rmtree(old, ignore_errors=True)
        full = {"id": name, "started": started, **metadata}
        if "arguments" in full:
            full["arguments"] = recordable(full["arguments"])
        _write_metadata(path, full)
        descriptor = os.open(path / _EVENTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        _remember(path)
        return cls(path, os.fdopen(descriptor, "w", encoding="ascii"), full)

    @property
    def started(self) -> float:
        """When the run began, in seconds since the epoch."""
        return float(self._metadata["started"])

    def append(self, event: Event) -> None:
        """Add an event; it is in the file when this returns. Raises DeployError ``journal-not-written``."""
        with _said_as_such(self.path):
            self._file.write(to_json(event) + "\n")
            self._file.flush()

    @contextmanager
    def keeps_faults(self) -> Iterator[None]:
        """Leaves the traceback of a fault of deploy itself beside the events; raises ``internal-error``."""
        try:
            yield
        except (DeployError, BrokenPipeError):
            raise
        except Exception:  # noqa: BLE001 - whatever it is, its traceback belongs to this run
            path = self.path / _TRACEBACK
            with (
                _said_as_such(self.path),
                os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file,
            ):
                traceback.print_exc(file=file)
            raise internal_error(str(path)) from None

    def finish(self, *, converged: Sequence[str] = (), recorded: Mapping[str, str] | None = None) -> None:
        """Say that the run came to its end, and which hosts are now as the site says.

        ``recorded`` is by host a digest of the records that it keeps. A run that never says so counts as
        interrupted. Raises DeployError ``journal-not-written``.
        """
        self._metadata |= {"ended": time.time(), "converged": list(converged), "recorded": recorded or {}}
        with _said_as_such(self.path):
            self._file.close()
            _write_metadata(self.path, self._metadata)


def _write_metadata(path: Path, metadata: Mapping[str, Any]) -> None:
    replace_file(path / _METADATA, json.dumps(metadata, indent=1) + "\n")


@dataclass(frozen=True)
class RecordedRun:
    """A run as its journal tells it."""

    path: Path
    metadata: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The name of its directory."""
        return self.path.name

    @property
    def is_complete(self) -> bool:
        """Whether it came to its end, rather than vanishing without a last word."""
        return "ended" in self.metadata

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that the run was for."""
        return tuple(str(host) for host in self.metadata.get("hosts", ()))

    @property
    def converged(self) -> tuple[str, ...]:
        """The hosts that it made what the site says, whole."""
        return tuple(str(host) for host in self.metadata.get("converged", ()))

    @property
    def recorded(self) -> dict[str, str]:
        """By host a digest of the records that it kept after the run, where all of them are known."""
        known = self.metadata.get("recorded")
        return {str(name): str(of) for name, of in known.items()} if isinstance(known, Mapping) else {}

    @property
    def started(self) -> float | None:
        """When it began; unknown when its metadata is lost."""
        started = self.metadata.get("started")
        return float(started) if isinstance(started, (int, float)) else None

    def events(self) -> Iterator[Event]:
        """Its events in order; a line that a crash cut short is left out."""
        try:
            file = (self.path / _EVENTS).open(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return
        with file:
            for line in file:
                event = from_json(line)
                if not isinstance(event, RawEvent):
                    yield event


def recorded_runs(site_directory: Path) -> list[RecordedRun]:
    """All runs of a site, the oldest first. Raises DeployError ``site-not-writable``."""
    runs = site_directory / ".deploy" / "runs"
    try:
        return [_read(path) for path in sorted(runs.iterdir()) if path.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except PermissionError as problem:
        raise _not_writable(site_directory, problem) from None


def last_run(site_directory: Path) -> RecordedRun | None:
    """The newest run of a site."""
    runs = recorded_runs(site_directory)
    return runs[-1] if runs else None


def last_run_of_user() -> RecordedRun | None:
    """The run that this user started last, on any site."""
    try:
        path = Path(_pointer().read_text(encoding="utf-8").strip())
    except OSError:
        return None
    return _read(path) if path.is_dir() else None


def _read(path: Path) -> RecordedRun:
    try:
        metadata = json.loads((path / _METADATA).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        metadata = {}
    return RecordedRun(path, metadata if isinstance(metadata, dict) else {})


def _pointer() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "deploy" / "last-run"


def _remember(path: Path) -> None:
    try:
        pointer = _pointer()
        pointer.parent.mkdir(parents=True, exist_ok=True)
        pointer.write_text(f"{path.resolve()}\n", encoding="utf-8")
    except (OSError, RuntimeError):
        return  # Without a home the run still counts; only `deploy report` without an inventory misses it.
