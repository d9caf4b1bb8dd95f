import hashlib
import urllib.request
from pathlib import Path

import pytest

from deploy.bundle.contents import Download
from deploy.bundle.files import fetch, place_of
from deploy.errors import DeployError

CONTENT = b"a plugin\n"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def url(tmp_path: Path) -> str:
    source = tmp_path / "source"
    source.write_bytes(CONTENT)
    return source.as_uri()


def test_a_file_is_fetched_once(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    download = Download(url, DIGEST)
    assert fetch(download, tmp_path / "files")
    assert place_of(download, tmp_path / "files").read_bytes() == CONTENT
    monkeypatch.delattr(urllib.request, "urlopen")
    assert not fetch(download, tmp_path / "files")


def test_a_file_that_is_another_is_refused_and_not_kept(tmp_path: Path, url: str) -> None:
    download = Download(url, "1" * 64)
    with pytest.raises(DeployError, match=f"its checksum is {DIGEST}, and has to be 1{{64}}"):
        fetch(download, tmp_path / "files")
    assert not any(path.is_file() for path in (tmp_path / "files").rglob("*"))


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match="No such file"):
        fetch(Download((tmp_path / "none").as_uri(), DIGEST), tmp_path / "files")


@pytest.mark.parametrize("url", ["https://x/../../etc/passwd", "https://user:word@x/a"])
def test_an_address_does_not_lead_out_of_the_bundle(tmp_path: Path, url: str) -> None:
    with pytest.raises(DeployError, match=r"has \.\. or a password in it"):
        place_of(Download(url, DIGEST), tmp_path)


def test_the_place_is_where_a_mirror_has_it(tmp_path: Path) -> None:
    assert (
        place_of(Download("https://github.com/a/b.deb", DIGEST), tmp_path) == tmp_path / "github.com/a/b.deb"
    )
