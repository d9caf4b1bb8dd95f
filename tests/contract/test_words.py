"""The field's words: what an Ansible or Slurm admin would not say is found in what he reads."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.tracked import ROOT, tracked

WORDS: Mapping[str, str] = {
    r"mend(?:s|ed|ing)?": "fix, correct, repair",
    r"foret(?:ell(?:s|ing)?|old)": "preview",
    r"h(?:e|o)lds?\b[^.;:|]{0,160}\bagainst": "compare with, check by",
    r"(?:is|are|was|were) another than": "differs from",
    r"t(?:ell|ells|elling|old) of": "report, name, say what it is",
    r"reckon(?:s|ed|ing)?": "compute, count",
    r"numbers of (?:hosts|GPUs)": "metrics",
}
_BANNED = re.compile(
    "|".join(rf"\b(?P<w{place}>{word})\b" for place, word in enumerate(WORDS)), re.IGNORECASE
)
# Made from texts in the code, which say it there.
_FROM_CODE = frozenset[str]()


def _read_by_admins() -> Iterator[Path]:
    """Documents, what messages are explained with, descriptions of variables, forms for issues."""
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        is_data = name == "docs/errors.yml" or name.startswith((".github/", "mkdocs"))
        is_role = name.startswith("roles/") and path.parent.name == "meta"
        if (path.suffix == ".md" and name not in _FROM_CODE) or is_data or is_role:
            yield path


def banned(text: str) -> list[str]:
    """Each banned word with what to say instead."""
    whole = " ".join(text.split())
    return [
        f"{found[0]}: say {[*WORDS.values()][int(found.lastgroup.removeprefix('w'))]}"
        for found in _BANNED.finditer(whole)
        if found.lastgroup
    ]


def test_banned_words_are_found() -> None:
    text = "Mend it: it is another than X,\nand what it tells of is held\nagainst Y. It was foretold."
    assert [said.partition(":")[0] for said in banned(text)] == [
        "Mend",
        "is another than",
        "tells of",
        "held against",
        "foretold",
    ]
    assert banned("mended_by: it holds the key. It amends nothing, against all odds") == []


def test_what_admins_read_is_in_the_fields_words() -> None:
    paths = list(_read_by_admins())
    assert len(paths) > 100
    found = [
        f"{path.relative_to(ROOT)}: {said}"
        for path in paths
        for said in banned(path.read_text(encoding="utf-8"))
    ]
    assert found == []
