from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.errors import DeployError
from deploy.site import creation
from deploy.site.creation import create_site

FILES = {"inventory.ini": "[all]\n", "group_vars/all.yml": "---\n", ".gitignore": "secrets.yml\n"}


def content(directory: Path) -> dict[str, bytes]:
    """Every file below a directory, empty directories included."""
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else b""
        for path in directory.rglob("*")
    }


def refused(directory: Path) -> str:
    with pytest.raises(DeployError) as caught:
        create_site(directory, FILES)
    (finding,) = caught.value.findings
    assert finding.where == str(directory)
    assert finding.hint
    return finding.reference


def test_a_new_directory(tmp_path: Path) -> None:
    site = tmp_path / "site"
    create_site(site, FILES)
    assert content(site).keys() == {*FILES, "group_vars", "secrets.yml"}
    assert (site / "secrets.yml").stat().st_mode & 0o777 == 0o600
    assert "munge_key: " in (site / "secrets.yml").read_text()
    assert list(tmp_path.iterdir()) == [site]


def test_two_sites_share_no_secret(tmp_path: Path) -> None:
    for name in ("one", "two"):
        create_site(tmp_path / name, FILES)
    one, two = ((tmp_path / name / "secrets.yml").read_text() for name in ("one", "two"))
    assert not {line for line in one.splitlines() if not line.startswith("#")} & set(two.splitlines())


def test_a_directory_with_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "README.md").write_text("ours")
    monkeypatch.chdir(tmp_path)
    create_site(Path(), FILES)
    assert content(tmp_path).keys() == {*FILES, "group_vars", "secrets.yml", "README.md"}
    assert (tmp_path / "README.md").read_text() == "ours"


@pytest.mark.parametrize(
    "name",
    ["inventory.ini", "group_vars", "secrets.yml", "hardware.yml", "host_vars", ".deploy"],
)
def test_a_site_that_is_there_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("precious")
    before = content(tmp_path)
    assert refused(tmp_path) == "site-exists"
    assert content(tmp_path) == before


def test_a_dangling_link_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "inventory.ini").symlink_to(tmp_path / "elsewhere")
    assert refused(tmp_path) == "site-exists"
    assert (tmp_path / "inventory.ini").is_symlink()


def test_a_missing_parent_is_named(tmp_path: Path) -> None:
    assert refused(tmp_path / "no" / "site") == "site-not-made"
    assert content(tmp_path) == {}


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "site").write_text("a file")
    assert refused(tmp_path / "site") == "site-not-made"
    assert content(tmp_path) == {"site": b"a file"}


def make_new(directory: Path) -> Path:
    return directory / "site"


def make_in_old(directory: Path) -> Path:
    (directory / "README.md").write_text("ours")
    (directory / ".gitignore").write_text("*.swp")
    return directory


def test_a_repository_that_is_new_becomes_a_site(tmp_path: Path) -> None:
    """Git's hosts give it a list of files to ignore."""
    make_in_old(tmp_path)
    create_site(tmp_path, {**FILES, ".gitignore": "*.swp\nsecrets.yml\n.deploy\n"})
    assert (tmp_path / ".gitignore").read_text() == "*.swp\nsecrets.yml\n.deploy\n"
    (tmp_path / "two").mkdir()
    (tmp_path / "two/.gitignore").write_bytes(b"caf\xe9\n")
    create_site(tmp_path / "two", FILES)
    assert (tmp_path / "two/.gitignore").read_bytes() == b"caf\xe9\nsecrets.yml\n"
    (tmp_path / "one").mkdir()
    (tmp_path / "one/.gitignore").symlink_to(tmp_path / ".gitignore")
    assert refused(tmp_path / "one") == "site-exists"


@pytest.mark.parametrize("prepare", [make_new, make_in_old])
@pytest.mark.parametrize("problem", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_failure_before_the_end_leaves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    prepare: Callable[[Path], Path],
    problem: BaseException,
) -> None:
    site = prepare(tmp_path)
    before = content(tmp_path)

    def fail(*_: object) -> None:
        raise problem

    monkeypatch.setattr(creation, "fill_secrets", fail)
    with pytest.raises((DeployError, KeyboardInterrupt)):
        create_site(site, FILES)
    assert content(tmp_path) == before


def test_a_failure_while_files_take_their_place_takes_them_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_in_old(tmp_path)
    before = content(tmp_path)
    rename = Path.rename
    placed: list[str] = []

    def fail_at_the_inventory(path: Path, target: Path) -> Path:
        if target == tmp_path / "inventory.ini":
            placed.extend(path.name for path in tmp_path.iterdir())
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail_at_the_inventory)
    assert refused(tmp_path) == "site-not-made"
    assert {"group_vars", "secrets.yml"} <= set(placed)
    assert content(tmp_path) == before


def test_two_at_once_make_one_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"

    def be_overtaken(*_: object) -> None:
        site.mkdir()
        (site / "inventory.ini").write_text("of the other")

    monkeypatch.setattr(creation, "fill_secrets", be_overtaken)
    assert refused(site) == "site-not-made"
    assert content(tmp_path) == {"site": b"", "site/inventory.ini": b"of the other"}
