"""Archives on this machine: what is no whole backup is refused, with the reason."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.run.archive import UnreadableError, made_by, read_archive

_AGE = """\
#!/bin/sh
[ "$1" = --decrypt ] || exec tr a-z n-za-m
for file; do :; done
grep -q SPOILED "$file" && { echo "age: error: failed to decrypt the payload" >&2; exit 1; }
exec tr a-z n-za-m < "$file"
"""
Written = Callable[..., Path]


@pytest.fixture(autouse=True)
def _age(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of this name that makes something else of what it gets, and back."""
    place = tmp_path_factory.mktemp("bin")
    (place / "age").write_text(_AGE)
    (place / "age").chmod(0o755)
    monkeypatch.setenv("PATH", str(place), prepend=":")
    monkeypatch.setitem(made_by().ENVIRONMENT, "PATH", f"{place}:/usr/bin:/bin")


@pytest.fixture
def written(tmp_path: Path) -> Written:
    def write(*, ends: bool = True, **manifest: object) -> Path:
        path, made = tmp_path / "c.age", made_by()
        with made.encrypted(path, ["age1"]) as out:
            members = made.Members(out)
            members.add("site/secrets.yml", b"munge_key: x\n")
            members.add("records/hosts.json", b"{}")
            with members.pieces("state.tar.gz") as pieces:
                pieces.write(b"a state")
            if ends:
                members.end({"format": made.FORMAT, **manifest})
        return path

    return write


def test_an_archive_is_read_to_its_end_and_small_parts_are_kept(written: Written) -> None:
    archive = read_archive(written(cluster="c"), ())
    assert archive.manifest["cluster"] == "c"
    assert archive.files("site") == {"secrets.yml": b"munge_key: x\n"}
    assert archive.files("records") == {"hosts.json": b"{}"}
    assert b"".join(archive.pieces("state.tar.gz")) == b"a state"
    assert "munge_key" not in repr(archive)


def test_an_archive_that_was_altered_is_refused_in_the_words_of_age(written: Written) -> None:
    path = written()
    path.write_bytes(path.read_bytes() + b"SPOILED")
    with pytest.raises(UnreadableError, match=r"^failed to decrypt"):
        read_archive(path, ())


def test_an_archive_without_its_end_is_refused(written: Written) -> None:
    with pytest.raises(UnreadableError, match="its end is missing"):
        read_archive(written(ends=False), ())


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.age").write_bytes(b"nothing of the kind" * 100)
    with pytest.raises(UnreadableError, match="no archive"):
        read_archive(tmp_path / "c.age", ())


def test_an_archive_of_another_format_is_refused(written: Written) -> None:
    with pytest.raises(UnreadableError, match="format 99"):
        read_archive(written(format=99), ())


def test_a_member_that_is_not_as_the_manifest_says_is_refused(tmp_path: Path) -> None:
    made, path = made_by(), tmp_path / "c.age"
    with made.encrypted(path, ["age1"]) as out:
        members = made.Members(out)
        members.add("site/secrets.yml", b"munge_key: x\n")
        members.sums["site/secrets.yml"] = "0" * 64
        members.end({"format": made.FORMAT})
    with pytest.raises(UnreadableError, match=r"site/secrets\.yml is not as the manifest says"):
        read_archive(path, ())


def test_a_manifest_that_nobody_can_read_is_refused(tmp_path: Path) -> None:
    made, path = made_by(), tmp_path / "c.age"
    with made.encrypted(path, ["age1"]) as out:
        members = made.Members(out)
        members.add(made.MANIFEST, json.dumps([1]).encode())
        members.end({})
    with pytest.raises(UnreadableError, match="cannot be read"):
        read_archive(path, ())
