"""docs/errors.md: what every reference of a message means, from docs/errors.yml."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

_INTRODUCTION = """\
# Messages

Every message ends with a reference in brackets, and says where it is, what is wrong and what to type next:

```text
group_vars/all.yml:3: slurmdbd_port is 65536, not a number from 1 to 65535 [invalid-value]
  -> it means: DbdPort, the port slurmdbd listens on.
```

A reference keeps its meaning. A warning is told and stops nothing; an error stops the command before anything
changes. [Exit codes](cli.md#exit-codes) tell the kinds apart. Made by `docs/generate.py` from errors.yml.
"""


def chapters(root: Path) -> list[Mapping[str, Any]]:
    """The chapters of docs/errors.yml: title, text and references."""
    content: list[Mapping[str, Any]] = yaml.safe_load(
        (root / "docs" / "errors.yml").read_text(encoding="utf-8")
    )
    return content


def outputs(root: Path) -> Iterator[tuple[Path, str]]:
    """The document."""
    parts = [_INTRODUCTION]
    for chapter in chapters(root):
        parts.append(f"## {chapter['title']}\n\n{chapter['text']}\n")
        parts += [_section(reference, entry) for reference, entry in chapter["references"].items()]
    yield root / "docs" / "errors.md", "\n".join(parts)


def _section(reference: str, entry: Mapping[str, str]) -> str:
    """A heading is an anchor of its own: errors.md#no-slurm-master."""
    return f"### {reference}\n\n{entry['means'].strip()}\n\n*What to do*: {entry['remedy'].strip()}\n"
