# ruff: noqa: INP001 - a script, not a package
"""Writes what follows from the roles' argument_specs.

That is a table in each README, docs/variables.md, and the example site's group_vars.

Run ``python docs/generate.py`` after a change to a role's variables; with ``--check`` it only says which
files are out of date.
"""

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- variables -->", "<!-- /variables -->"

_BETWEEN = re.compile(rf"(?<={re.escape(BEGIN)}\n).*?(?={re.escape(END)})", re.DOTALL)
_MARKUP = re.compile(r"\b[BCIV]\((.*?)\)")
_COMPUTED = re.compile(r"(`deploy`|[Aa] deployment) (sets|computes)")
_INTRODUCTION = """\
# Variables

Every variable that an inventory may set, by role. A name that is not listed here is refused, except names
that start with `site_`, which are yours. Made by `docs/generate.py` from the roles' argument specifications.
"""
_EXAMPLE_INTRODUCTION = """\
---
# Every variable with its default, commented out: uncomment what you change. Variables for some hosts only
# go into group_vars/<group>.yml or host_vars/<host>.yml. Made by docs/generate.py from the roles' argument
# specifications; what deploy computes from the inventory is left out.

"""


def specification(role: Path) -> Mapping[str, Any]:
    """The entry point ``main`` of a role's argument_specs."""
    text = (role / "meta" / "argument_specs.yml").read_text(encoding="utf-8")
    entry: Mapping[str, Any] = yaml.safe_load(text)["argument_specs"]["main"]
    return entry


def table(options: Mapping[str, Any]) -> str:
    """A Markdown table of variables, the keys of their elements below them."""
    if not options:
        return "This role has no variables.\n"
    rows = [_row(name, option) for name, option in _flattened(options)]
    head = ("| Variable | Type | Default | Meaning |", "|---|---|---|---|")
    return "".join(f"{line}\n" for line in (*head, *rows))


def _flattened(options: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, option in options.items():
        yield place + name, option
        inside = f"{place}{name}[]." if option.get("type") == "list" else f"{place}{name}."
        yield from _flattened(option.get("options") or {}, inside)


def _row(name: str, option: Mapping[str, Any]) -> str:
    kind = option.get("type", "str")
    if elements := option.get("elements"):
        kind += f" of {elements}"
    cells = (f"`{name}`", kind, _default(option), _meaning(option))
    return f"| {' | '.join(_escaped(cell) for cell in cells)} |"


def _escaped(cell: str) -> str:
    return (
        cell.replace("|", r"\|").replace("<", "&lt;")
        if not cell.startswith("`")
        else cell.replace("|", r"\|")
    )


def _default(option: Mapping[str, Any]) -> str:
    if option.get("no_log") and option.get("required"):
        return "generated"
    if option.get("required"):
        return "required"
    if option.get("default") is None:
        return ""
    dumped = yaml.safe_dump(option["default"], default_flow_style=True, width=10_000, sort_keys=False)
    return f"`{dumped.removesuffix(chr(10)).removesuffix('...').strip()}`"


def _meaning(option: Mapping[str, Any]) -> str:
    description = option.get("description", "")
    sentences = description if isinstance(description, list) else [description]
    text = _MARKUP.sub(r"`\1`", " ".join(" ".join(str(sentence).split()) for sentence in sentences))
    if choices := option.get("choices"):
        text += f" One of {', '.join(f'`{choice}`' for choice in choices)}."
    return text


def _commented(name: str, option: Mapping[str, Any]) -> str:
    """A variable as a line of group_vars that changes nothing: its meaning, then its default."""
    lines = textwrap.wrap(_meaning(option).replace("`", ""), width=98)
    if isinstance(option["default"], (dict, list)) and option["default"]:
        value = yaml.safe_dump({name: option["default"]}, sort_keys=False, default_flow_style=False)
    else:
        value = f"{name}: {_default(option).strip('`')}"
    return "".join(f"# {line}\n" for line in lines) + "".join(f"#{x}\n" for x in value.splitlines()) + "\n"


def example_variables(entries: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of the example's group_vars: everything that has a default, role by role."""
    chapters = [_EXAMPLE_INTRODUCTION]
    for role, entry in entries.items():
        settable = {
            name: option
            for name, option in (entry.get("options") or {}).items()
            if option.get("default") is not None and not _COMPUTED.search(_meaning(option))
        }
        if settable:
            chapters.append(f"# == {role}: {entry['short_description']}\n\n")
            chapters += [_commented(name, option) for name, option in settable.items()]
    return "".join(chapters).rstrip("\n") + "\n"


def with_table(readme: str, body: str) -> str:
    """A README with this table between its markers; they are added at its end where they are missing."""
    if not _BETWEEN.search(readme):
        readme = f"{readme.rstrip()}\n\n## Variables\n\n{BEGIN}\n{END}\n"
    return _BETWEEN.sub(lambda _: f"\n{body}\n", readme)


def outputs(root: Path) -> Iterator[tuple[Path, str]]:
    """Every generated file and the text it should have."""
    chapters = [_INTRODUCTION]
    entries = {}
    for path in sorted((root / "roles").glob("*/meta/argument_specs.yml")):
        role = path.parent.parent
        entries[role.name] = entry = specification(role)
        body = table(entry.get("options") or {})
        readme = role / "README.md"
        if readme.exists():
            yield readme, with_table(readme.read_text(encoding="utf-8"), body)
        chapters.append(f"## {role.name}\n\n{entry['short_description']}.\n\n{body}")
    yield root / "docs" / "variables.md", "\n".join(chapters)
    yield root / "inventory" / "example" / "group_vars" / "all.yml", example_variables(entries)


def outdated(root: Path) -> list[tuple[Path, str]]:
    """The generated files whose text is not what it should be."""
    return [
        (path, text)
        for path, text in outputs(root)
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def main() -> int:
    """Writes the files, or with ``--check`` names them; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is out of date")
    check = parser.parse_args().check
    files = outdated(ROOT)
    for path, text in files:
        sys.stderr.write(f"{path.relative_to(ROOT)}: {'out of date' if check else 'written'}\n")
        if not check:
            path.write_text(text, encoding="utf-8")
    return 1 if check and files else 0


if __name__ == "__main__":
    sys.exit(main())
