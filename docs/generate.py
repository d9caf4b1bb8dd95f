"""Writes the documents that follow from the code: variables, example site, commands, messages.

Run ``python docs/generate.py`` after a change to a role's variables or to a verb; with ``--check`` it only
says which files are out of date.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for what the figures of tests/ share

from generators import (
    benchmarks,
    command,
    errors,
    example,
    monitoring,
    plays,
    rehearsals,
    reliability,
    testsuite,
    unwatched,
    validation,
    variables,
)

ROOT = Path(__file__).resolve().parents[1]
GENERATORS = (
    benchmarks,
    command,
    errors,
    example,
    monitoring,
    plays,
    rehearsals,
    reliability,
    testsuite,
    unwatched,
    validation,
    variables,
)


def outdated(root: Path) -> Iterator[tuple[Path, str]]:
    """The generated files whose text is not what it should be, with that text."""
    for generator in GENERATORS:
        for path, text in generator.outputs(root):
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                yield path, text


def main() -> int:
    """Writes the files, or with ``--check`` names them; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is out of date")
    check = parser.parse_args().check
    files = list(outdated(ROOT))
    for path, text in files:
        sys.stderr.write(f"{path.relative_to(ROOT)}: {'out of date' if check else 'written'}\n")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return 1 if check and files else 0


if __name__ == "__main__":
    sys.exit(main())
