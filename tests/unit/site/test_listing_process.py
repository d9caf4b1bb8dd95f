"""Ansible that is started before it is known what to read."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deploy.cli.app import app
from deploy.site.inventory import read_site
from deploy.site.listing_process import ListingProcess
from tests.unit.site.sites import write_site


def places(parent: Path) -> list[str]:
    return [path.name for path in parent.iterdir()]


@pytest.fixture
def in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where private directories are made."""
    place = tmp_path / "memory"
    place.mkdir(mode=0o700)
    monkeypatch.setattr("deploy.place.place_for_secrets", lambda: place)
    return place


def test_it_reads_what_it_is_asked_for_later(tmp_path: Path, in_memory: Path) -> None:
    inventory = write_site(tmp_path)
    with ListingProcess() as listing:
        assert listing.is_waiting
        site = read_site(inventory, under_way=listing)
        assert not listing.is_waiting
        # The second one needs a process of its own.
        assert read_site(inventory, under_way=listing).hosts == site.hosts
    assert site.hosts == read_site(inventory).hosts
    assert places(in_memory) == []


def test_unasked_it_ends_at_once_and_leaves_nothing(in_memory: Path) -> None:
    with ListingProcess() as listing:
        assert len(places(in_memory)) == 1
    assert not listing.is_waiting
    assert places(in_memory) == []


def test_a_question_that_ansible_fails_on_is_answered(tmp_path: Path) -> None:
    with ListingProcess() as listing:
        text, _ = listing.answer([str(tmp_path / "nothing.ini"), str(tmp_path), "", ""], None)
    assert "nothing.ini" in json.loads(text)["error"]


def test_one_that_ended_before_it_was_asked_is_told_as_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone.py"
    gone.write_text("import sys; sys.stdin.close(); sys.exit('no such module')\n")
    monkeypatch.setattr("deploy.site.listing_process.LISTING", gone)
    with ListingProcess() as listing:
        assert listing._program
        listing._program.wait()
        said = listing.answer(["inventory.ini"], lambda: {"names": ["x" * 100_000]})
    assert said == ("", "no such module\n")


@pytest.mark.parametrize("verb", ["cluster", "plan"])
@pytest.mark.parametrize("words", [["--no-such-option"], ["--help"], ["/nowhere/inventory.ini"]])
def test_a_command_line_that_reads_nothing_leaves_nothing(
    verb: str, words: list[str], in_memory: Path
) -> None:
    done = CliRunner().invoke(app, [verb, *words])
    assert done.exit_code == (0 if words == ["--help"] else 2) or "no such inventory" in str(done.exception)
    assert places(in_memory) == []
