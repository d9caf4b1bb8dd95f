import hashlib
import http.client
import io
import shutil
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


@pytest.mark.parametrize(
    ("url", "problem", "said"),
    [
        # A blank in an address, and an answer that breaks off.
        ("http://127.0.0.1:9/a b", None, "control characters"),
        ("http://127.0.0.1:9/a", http.client.IncompleteRead(b"plug"), "IncompleteRead"),
        ("http://127.0.0.1:9/a", KeyboardInterrupt("stopped"), "stopped"),
    ],
)
def test_what_breaks_off_is_said_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, problem: BaseException | None, said: str
) -> None:
    def break_off(*_: object, **__: object) -> io.BytesIO:
        assert problem
        answer = io.BytesIO(b"plug")
        monkeypatch.setattr(shutil, "copyfileobj", fail)
        return answer

    def fail(*_: object) -> None:
        assert problem
        raise problem

    if problem:
        monkeypatch.setattr(urllib.request, "urlopen", break_off)
    with pytest.raises((DeployError, KeyboardInterrupt), match=said):
        fetch(Download(url, DIGEST), tmp_path / "files")
    assert not any(path.is_file() for path in (tmp_path / "files").rglob("*"))


@pytest.mark.parametrize("url", ["https://x/../../etc/passwd", "https://user:word@x/a"])
def test_an_address_does_not_lead_out_of_the_bundle(tmp_path: Path, url: str) -> None:
    with pytest.raises(DeployError, match=r"has \.\. or a password in it"):
        place_of(Download(url, DIGEST), tmp_path)


def test_the_place_is_where_a_mirror_has_it(tmp_path: Path) -> None:
    assert (
        place_of(Download("https://github.com/a/b.deb", DIGEST), tmp_path) == tmp_path / "github.com/a/b.deb"
    )
