"""A Python environment as a site declares it: its place, what pip installs, the module file that loads it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STAMP = "deploy.json"
"""Written into an environment when it is complete."""
_MARK = "# Made by deploy for the environment "
_DIGITS = 12
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Environment:
    """One entry of ml_stack_environments."""

    name: str
    version: str
    requirements: tuple[str, ...]
    python: str = "python3"
    index_url: str = ""
    extra_index_urls: tuple[str, ...] = ()
    find_links: str = ""

    @classmethod
    def declared(cls, entry: Mapping[str, Any]) -> Environment:
        """From the module's argument; what was left out is None there."""
        given = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
        return cls(**{key: value for key, value in given.items() if value is not None})

    def digest(self, python: str) -> str:
        """Changes whenever something else would be installed: an environment is never changed in place."""
        content = [python, sorted(self.requirements)]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:_DIGITS]

    def place(self, directory: Path, python: str) -> Path:
        """Where it lies when it is made by this Python: its program, and the name of its directory in lib."""
        return directory / "environments" / f"{self.name}-{self.version}-{self.digest(python)}"

    def kept(self, directory: Path, python: str) -> Path | None:
        """The environment that users load now, where it is what is declared, whatever it was named after."""
        file = self.module_file(directory)
        place = place_of(file.read_text(encoding="utf-8")) if file.is_file() else None
        if not place or place.parent != directory / "environments" or not is_complete(place):
            return None
        listed = (place / "requirements.txt").read_text(encoding="utf-8").splitlines()
        program, library = python.rsplit(maxsplit=1)
        made_by_it = (place / "bin/python").resolve() == Path(program) and (place / "lib" / library).is_dir()
        return place if made_by_it and sorted(listed) == sorted(self.requirements) else None

    def module_file(self, directory: Path) -> Path:
        """The file by which users load it."""
        return directory / "modulefiles" / self.name / self.version

    @staticmethod
    def lock_file(directory: Path, place: Path) -> Path:
        """The file that says which packages it was built of; it stays when the environment goes."""
        return directory / "locks" / f"{place.name}.txt"

    def pip_settings(self) -> dict[str, str]:
        """Where pip gets packages from, for its environment; empty means what pip on that host is set to."""
        settings = {
            "PIP_INDEX_URL": self.index_url,
            "PIP_EXTRA_INDEX_URL": " ".join(self.extra_index_urls),
            "PIP_FIND_LINKS": self.find_links,
        }
        return {
            # Packages that lie in a directory are meant to be all there is.
            **({"PIP_NO_INDEX": "1"} if self.find_links and not self.index_url else {}),
            **{name: value for name, value in settings.items() if value},
        }

    def module_text(self, place: Path) -> str:
        """A module file in Tcl, which Lmod and Environment Modules both read."""
        return "\n".join(
            (
                "#%Module1.0",
                f"{_MARK}{place}",
                f"module-whatis {{Python with {', '.join(self.requirements)}}}",
                f"conflict {self.name}",
                f"setenv VIRTUAL_ENV {place}",
                f"prepend-path PATH {place}/bin",
                "",
            )
        )


def place_of(module_text: str) -> Path | None:
    """The environment that a module file loads; None for a file that is not ours."""
    found = re.search(rf"^{re.escape(_MARK)}(/.*)$", module_text, re.MULTILINE)
    return Path(found.group(1)) if found else None


def lock_lines(wheels: Path) -> list[str]:
    """What installs the packages in a directory and nothing else, for pip."""
    return [_locked(path) for path in sorted(wheels.glob("*.whl"))]


def _locked(wheel: Path) -> str:
    # A wheel's file name has its parts between hyphens, and none within.
    name, version, *_ = wheel.name.split("-")
    with wheel.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(_BLOCK):
            digest.update(block)
    return f"{name}=={version} --hash=sha256:{digest.hexdigest()}"


def is_complete(place: Path) -> bool:
    """Whether an environment was built to its end."""
    return (place / STAMP).is_file()


def leftover_module_files(directory: Path, wanted: Iterable[Path]) -> list[Path]:
    """Module files of ours that nothing declares any more; their environments stay, for jobs."""
    keep = set(wanted)
    others = [path for path in sorted((directory / "modulefiles").glob("*/*")) if path not in keep]
    return [path for path in others if path.is_file() and place_of(path.read_text(encoding="utf-8"))]
