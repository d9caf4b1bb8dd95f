"""The table of variables in each role's README, and docs/variables.md."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from deploy.site.schema import entry_points
from deploy.site.wording import Spec, default_value, meaning, type_name, with_keys

_BEGIN, _END = "<!-- variables -->", "<!-- /variables -->"
_BETWEEN = re.compile(rf"(?<={re.escape(_BEGIN)}\n).*?(?={re.escape(_END)})", re.DOTALL)
_INTRODUCTION = """\
# Variables

Every variable that an inventory may set, by role. A name that is not listed here is refused, except names
that start with `site_`, which are yours. Made by `docs/generate.py` from the roles' argument specifications.
"""


def outputs(root: Path) -> Iterator[tuple[Path, str]]:
    """The READMEs of roles and the document with all of them."""
    chapters = [_INTRODUCTION]
    for role, entry in entry_points().items():
        body = _table(entry.get("options") or {})
        readme = root / "roles" / role / "README.md"
        if readme.exists():
            yield readme, _with_table(readme.read_text(encoding="utf-8"), body)
        chapters.append(f"## {role}\n\n{entry['short_description']}.\n\n{body}")
    yield root / "docs" / "variables.md", "\n".join(chapters)


def _table(options: Mapping[str, Spec]) -> str:
    """A Markdown table of variables, the keys of their elements below them."""
    if not options:
        return "This role has no variables.\n"
    head = ("| Variable | Type | Default | Meaning |", "|---|---|---|---|")
    return "".join(f"{line}\n" for line in (*head, *(_row(name, spec) for name, spec in with_keys(options))))


def _row(name: str, spec: Spec) -> str:
    cells = (f"`{name}`", type_name(spec), _default(spec), meaning(spec))
    return f"| {' | '.join(_escaped(cell) for cell in cells)} |"


def _escaped(cell: str) -> str:
    text = cell.replace("|", r"\|")
    return text if cell.startswith("`") else text.replace("<", "&lt;")


def _default(spec: Spec) -> str:
    if spec.get("required"):
        return "generated" if spec.get("no_log") else "required"
    value = default_value(spec)
    return f"`{value}`" if value else ""


def _with_table(readme: str, body: str) -> str:
    """A README with this table between its markers; they are added at its end where they are missing."""
    if not _BETWEEN.search(readme):
        readme = f"{readme.rstrip()}\n\n## Variables\n\n{_BEGIN}\n{_END}\n"
    return _BETWEEN.sub(lambda _: f"\n{body}\n", readme)
