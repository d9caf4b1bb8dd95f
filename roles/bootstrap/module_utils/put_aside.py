"""Files of others that override deploy's: moved to where they do nothing, and where they are found again."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from pathlib import Path

PLACE = Path("/var/lib/deploy/put-aside")


def put_aside(paths: Iterable[str], place: Path = PLACE) -> list[str]:
    """Moves the files that are still there; returns what was done."""
    done = []
    for path in [Path(name) for name in paths]:
        if not (path.exists() or path.is_symlink()):
            continue
        moment = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        target = place / moment / path.relative_to("/")
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(str(path), target)
        done.append(f"{path} put aside as {target}")
    return done


def services_of(paths: Iterable[str]) -> list[str]:
    """The services whose units these files override."""
    units = [part.removesuffix(".d") for path in paths for part in Path(path).parts[-2:]]
    return list(dict.fromkeys(unit for unit in units if unit.endswith(".service") and unit != "service"))


def are_units(paths: Iterable[str]) -> bool:
    """Whether systemd has to look again."""
    return any("systemd" in Path(path).parts for path in paths)
