"""The YAML files of a site that deploy itself reads: secrets.yml and hardware.yml."""

from pathlib import Path
from typing import Any

import yaml

from deploy.site.aliases import TOO_MANY, line_of_excess

_NOT_TEXT = "it is not text in UTF-8"
_NOT_YAML = "it is not YAML"
_NO_MAPPING = "it is not a mapping of names to values"


class NotReadable(Exception):  # noqa: N818 - the program is right, its input is not
    """A file that is no YAML mapping: why, and the line where that is known."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line

    def place(self, path: Path) -> str:
        """The file, with the line where that is known."""
        return f"{path}:{self.line}" if self.line else str(path)


class _VaultTolerantLoader(yaml.SafeLoader):
    """Reads ``!vault`` values as opaque."""


_VaultTolerantLoader.add_constructor("!vault", lambda _loader, _node: {"__ansible_vault": True})


def read_text(path: Path) -> str:
    """A file's text. Raises NotReadable."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as problem:
        raise NotReadable(str(problem.strerror)) from None
    except UnicodeDecodeError:
        raise NotReadable(_NOT_TEXT) from None


def parse_mapping(text: str) -> dict[str, Any]:
    """The mapping that a text is, empty for an empty one. Raises NotReadable, which quotes nothing of it."""
    if line := line_of_excess(text):
        raise NotReadable(TOO_MANY, line)
    try:
        content = yaml.load(text, Loader=_VaultTolerantLoader)  # noqa: S506 - a SafeLoader subclass
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark
        raise NotReadable(_NOT_YAML, mark.line + 1 if mark else None) from None
    # A date that is none, or endless nesting, is no error of YAML's own.
    except (yaml.YAMLError, ValueError, RecursionError):
        raise NotReadable(_NOT_YAML) from None
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        raise NotReadable(_NO_MAPPING)
    return content
