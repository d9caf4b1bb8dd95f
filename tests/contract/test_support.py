"""docs/support.md says of CI what CI does."""

import re
import runpy
from collections.abc import Iterator

from tests.contract.content import ROOT, role_directories

_OF_DEBIAN_12 = re.compile(r"\bDebian 12\b|\b22\.05\b")
_CELLS = 3


def _rows() -> Iterator[tuple[str, str]]:
    """What the table is about, and what CI does of it."""
    for line in (ROOT / "docs/support.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("|") and len(cells) == _CELLS:
            yield cells[0], cells[1]


def test_what_ci_does_on_debian_12_is_run_there() -> None:
    """Of a scenario CI boots the machine with Debian 13 alone, unless molecule/run.py names its role."""
    everywhere = runpy.run_path(str(ROOT / "molecule/run.py"))["ON_EVERY_RELEASE"]
    roles = {role.name for role in role_directories()}
    said, wrong = [], []
    for what, by_ci in _rows():
        for clause in re.split(r"[;:]", by_ci):
            if not _OF_DEBIAN_12.search(clause) or "by hand" in clause:
                continue
            named = {*re.findall(r"`(\w+)`", what)} & roles | {*re.findall(r"`molecule/(\w+)`", clause)}
            said += sorted(named)
            if not named <= everywhere or (not named and "Molecule" in clause):
                wrong.append(
                    f"{what}: {clause.strip()[:80]}: {', '.join(named - everywhere) or 'of no role'}"
                )
    assert wrong == []
    assert len(said) > 5
