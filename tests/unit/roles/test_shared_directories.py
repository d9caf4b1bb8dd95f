"""Directories become what they are declared to be, and root is led nowhere else."""

import os
from pathlib import Path, PurePosixPath

import pytest

from tests.unit.roles.loading import load_module

module = load_module("playbooks/library/shared_directories.py")
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives to others")


def keep(path: Path, mode: str = "2775", *, looks_only: bool = False) -> bool:
    declared = {"path": str(path), "owner": "daemon", "group": "games", "mode": mode}
    changed: bool = module.Shared(declared).keep(looks_only=looks_only)
    return changed


def test_what_is_missing_is_made_and_then_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "data"
    assert keep(place, looks_only=True)
    assert not place.exists()
    assert keep(place)
    found = place.stat()
    assert (place.owner(), place.group(), oct(found.st_mode)) == ("daemon", "games", "0o42775")
    assert not keep(place)


def test_another_mode_or_owner_is_put_right(tmp_path: Path) -> None:
    place = tmp_path / "data"
    keep(place)
    place.chmod(0o777)
    assert keep(place, looks_only=True)
    assert keep(place)
    os.chown(place, 0, 0)
    assert keep(place)
    assert oct(place.stat().st_mode) == "0o42775", "chown has not taken the bit away"


def test_without_a_group_it_is_the_owners(tmp_path: Path) -> None:
    module.Shared({"path": str(tmp_path / "data"), "owner": "daemon", "group": ""}).keep(looks_only=False)
    assert (tmp_path / "data").group() == "daemon"


@pytest.mark.parametrize("link", ["data", "data/inner"])
def test_a_symbolic_link_is_followed_nowhere(tmp_path: Path, link: str) -> None:
    target = tmp_path / "of-somebody-else"
    target.mkdir()
    place = tmp_path / link
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(target)
    for path in (place, place / "deeper"):
        with pytest.raises(module.RefusedError, match=f"{place} is a symbolic link"):
            keep(path)
    assert [*target.iterdir()] == []
    assert target.owner() == "root"


def test_a_parent_that_is_missing_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(module.Missing, match=f"{tmp_path}/storage is not there"):
        keep(tmp_path / "storage" / "data")


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(module.RefusedError, match="Not a directory"):
        keep(tmp_path / "data")


def test_an_account_that_is_not_there_is_named() -> None:
    with pytest.raises(module.RefusedError, match="there is no account nobody-of-that-name"):
        module.Shared({"path": "/data", "owner": "nobody-of-that-name"})


def test_a_descriptor_of_the_root_is_opened() -> None:
    place = module.opened(PurePosixPath("/"))
    assert os.path.samestat(os.fstat(place), Path("/").stat())
    os.close(place)
