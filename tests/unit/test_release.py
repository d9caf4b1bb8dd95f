import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from deploy import __version__
from tests import release
from tests.tracked import ROOT

_GOOD = "# Changes\n\n## Unreleased\n\n## 1.1.0\n\n### Slurm\n\n- New.\n\n## 1.0.0\n\n- Old.\n"


def test_a_changelog_with_the_version_is_a_releases() -> None:
    assert list(release.complaints(_GOOD, "1.1.0")) == []


@pytest.mark.parametrize(
    ("changelog", "version", "said"),
    [
        (_GOOD, "1.2.0", "says nothing below '## 1.2.0'"),
        (_GOOD, "1.0.0", "the newest version of CHANGELOG.md is 1.1.0"),
        (
            _GOOD.replace("## Unreleased\n", "## Unreleased\n\n- Left.\n"),
            "1.1.0",
            "they belong below '## 1.1.0'",
        ),
        (_GOOD.replace("## Unreleased\n", ""), "1.1.0", "does not begin with"),
        (_GOOD.replace("### Slurm\n\n- New.\n", ""), "1.1.0", "says nothing below '## 1.1.0'"),
    ],
)
def test_what_a_changelog_lacks_is_said(changelog: str, version: str, said: str) -> None:
    (complaint,) = release.complaints(changelog, version)
    assert said in complaint


def test_the_changelog_has_the_version_of_the_code() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## {__version__}\n" in text
    assert text.startswith("# Changes\n\n## Unreleased\n")


def _wheel(path: Path, files: Mapping[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_wheels_are_compared_file_by_file(tmp_path: Path) -> None:
    one = _wheel(tmp_path / "one", {"same": "x", "changed": "x", "gone": "x"})
    other = _wheel(tmp_path / "other", {"same": "x", "changed": "y", "new": "x"})
    assert list(release.differences(one, one)) == []
    assert list(release.differences(one, other)) == ["gone", "new", "changed"]


def test_what_is_not_committed_is_no_release(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(release, "changed_files", lambda: iter(["not committed: deploy/x.py"]))
    monkeypatch.setattr(release, "_build", lambda: pytest.fail("built"))
    assert release.main() == 1
    assert "no release: not committed: deploy/x.py" in capsys.readouterr().err
