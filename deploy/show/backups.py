"""Backups, as text and for programs."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deploy.engine.backup import Kept, Made
from deploy.errors import shown_path
from deploy.judge.age import age

_KIB, _MIB = 1 << 10, 1 << 20


def backup_lines(kept: Sequence[Kept], now: float) -> Iterator[str]:
    """A line per backup: when it was made, how large it is, its file."""
    if not kept:
        yield "no backup"
    for each in kept:
        ago = f"{age(now - each.when)} ago"
        yield f"{moment(each.when)}  {ago:>12}  {_size(each.size):>10}  {_shown(each.file)}"


def made_lines(made: Made) -> Iterator[str]:
    """What a backup that was made has."""
    manifest, queue = made.manifest, made.manifest["queue"]
    yield f"{_shown(made.kept.file)}  {_size(made.kept.size)}"
    database = manifest["database"]
    yield f"database: {database['jobs']} jobs, {database['associations']} associations, loaded and counted"
    yield (
        f"queue: {len(queue['running'])} jobs on nodes, {len(queue['waiting'])} waiting"
        if queue
        else "queue: slurmctld does not answer; its state as it was last saved"
    )
    for name in made.removed:
        yield f"removed, since it outlived backup_keep: {name}"


def backup_json(kept: Sequence[Kept]) -> list[dict[str, Any]]:
    """The same for programs."""
    return [{"file": each.file, "made_at": each.when, "bytes": each.size} for each in kept]


def moment(seconds: float) -> str:
    """A moment as people write it, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _size(count: int) -> str:
    return f"{count / _MIB:.1f} MiB" if count >= _MIB else f"{count / _KIB:.1f} KiB"


def _shown(file: str) -> str:
    return shown_path(Path(file)) if Path(file).is_absolute() else file
