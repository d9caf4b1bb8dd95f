"""The documentation as a site: every link leads somewhere, and nothing is loaded from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.contract.content import ROOT
from tests.tracked import copy_tracked, tracked

_MKDOCS = Path(sys.executable).parent / "mkdocs"
# What a browser fetches when it shows a page, as opposed to what a reader may follow.
_LOADED = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//[^"'\s>]+""")
_STYLED = re.compile(
    r"""<link\b[^>]*\brel=["']?(?:stylesheet|preconnect|icon)\b[^>]*\bhref=["']?(?:https?:)?//"""
)


def _project(place: Path) -> Path:
    """A copy of what the site is made from."""
    for name in ("docs", "roles"):
        copy_tracked(name, place / name)
    for name in ("mkdocs.yml", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "SECURITY.md"):
        (place / name).write_bytes((ROOT / name).read_bytes())
    return place


def _build(project: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([_MKDOCS, "build"], cwd=project, capture_output=True, text=True, check=False)


def test_the_site_is_built_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    project = _project(tmp_path)
    answer = _build(project)
    assert answer.returncode == 0, answer.stderr
    pages = list((project / "build/docs").rglob("*.html"))
    assert len(pages) > 50
    assert _LOADED.search('<script src="https://cdn.example/x.js">')
    assert _STYLED.search('<link rel="stylesheet" href="https://fonts.example/css">')
    found = [
        (page.name, match[0])
        for page in pages
        for pattern in (_LOADED, _STYLED)
        for match in pattern.finditer(page.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("page", "link", "said"),
    [
        ("docs/lab.md", "nowhere.md", "nowhere.md"),
        ("docs/lab.md", "rehearse.md#nowhere", "#nowhere"),
        ("docs/lab.md", "../roles/nowhere/README.md", "roles/nowhere"),
        ("roles/slurmd/README.md", "../../docs/admin.md#nowhere", "#nowhere"),
        # It is in the repository and not in the site.
        ("docs/lab.md", "errors.yml", "errors.yml"),
    ],
)
def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path, page: str, link: str, said: str) -> None:
    project = _project(tmp_path)
    with (project / page).open("a", encoding="utf-8") as text:
        text.write(f"\nSee [there]({link}).\n")
    answer = _build(project)
    assert answer.returncode != 0
    assert said in answer.stderr


def test_roles_are_pages_that_others_link_to(tmp_path: Path) -> None:
    project = _project(tmp_path)
    assert _build(project).returncode == 0
    page = (project / "build/docs/storage.html").read_text(encoding="utf-8")
    assert 'href="roles/network_mounts/index.html"' in page
    settings = yaml.safe_load((project / "mkdocs.yml").read_text(encoding="utf-8"))
    assert settings["strict"] is True


_LINK = re.compile(r"\]\(([^)#\s]+)")


def test_links_lead_somewhere_in_the_repository_too() -> None:
    documents = [path for path in tracked() if path.suffix == ".md"]
    assert ROOT / "README.md" in documents
    links = [
        (document, link)
        for document in documents
        for link in _LINK.findall(document.read_text(encoding="utf-8"))
        if "://" not in link
    ]
    assert len(links) > 30
    assert [f"{document}: {link}" for document, link in links if not (document.parent / link).exists()] == []
