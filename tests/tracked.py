"""The project as git has it, without what its own commands leave in a working copy."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def tracked(below: str = ".") -> list[Path]:
    """The files that git keeps, in one directory of the project."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--", below], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [path for name in names.split("\0") if name and (path := ROOT / name).is_file()]


def copy_tracked(below: str, target: Path) -> Path:
    """A directory of the project, with nothing that runs left in it; returns the copy."""
    for path in tracked(below):
        place = target / path.relative_to(ROOT / below)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    return target
