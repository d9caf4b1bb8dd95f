"""The portal is asked by its own program; whatever that says, there is an answer."""

from pathlib import Path

import pytest

from deploy.validate.programs import portal

ASKED = {"user": "deploy-validate", "seconds": 5}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('echo \'{"why": "", "seconds": 7.1}\'', {"why": "", "seconds": 7.1}),
        ("echo no module >&2; exit 1", {"why": "no module"}),
        ("exit 3", {"why": "exit code 3"}),
    ],
)
def test_what_it_says_is_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, answer: object
) -> None:
    check = tmp_path / "check"
    check.write_text(f'test "$*" = "deploy-validate 5" || exit 9\n{text}\n')
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nshift\nexec sh "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(portal, "_CHECK", str(check))
    monkeypatch.setattr(portal, "_PYTHON", str(python))
    assert portal.check(ASKED) == answer


def test_a_portal_that_was_not_deployed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portal, "_CHECK", str(tmp_path / "check"))
    assert portal.check(ASKED)["why"] == "the role slurm_portal was not deployed here"
    (tmp_path / "check").touch()
    monkeypatch.setattr(portal, "_PYTHON", str(tmp_path / "python"))
    assert "No such file" in portal.check(ASKED)["why"]
