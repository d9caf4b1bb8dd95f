"""Temporary directories are made where what a killed run left is swept."""

import ast

from tests.contract.content import ROOT

_MAKES_THEM = "deploy/place.py"
_NOT_SWEPT = {
    "deploy/lab/stage.py": "a rehearsal's site, which the lab knows and is removed with",
    "deploy/run/leading.py": "on a controller, for one question",
    "deploy/validate/programs/image.py": "on a host, for one job",
}
_MAKERS = frozenset({"TemporaryDirectory", "mkdtemp"})


def test_what_a_killed_run_left_is_swept() -> None:
    found = {
        str(path.relative_to(ROOT))
        for path in ROOT.glob("deploy/**/*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in _MAKERS
    }
    assert found == {_MAKES_THEM, *_NOT_SWEPT}
