from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module

archive_source = load_module("roles/bootstrap/module_utils/archive_source.py")

KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nabc\n-----END PGP PUBLIC KEY BLOCK-----\n"
SETTING, SOURCE = "etc/apt/apt.conf.d/05deploy-archive", "etc/apt/deploy.sources.d/archive.sources"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "etc/apt/apt.conf.d").mkdir(parents=True)
    (tmp_path / "etc/os-release").write_text('ID=debian\nVERSION_ID="13"\n')
    return tmp_path


def test_a_bundle_is_the_only_source(root: Path) -> None:
    assert archive_source.settle(root, "http://x/packages/", KEY, writes=True)
    lines = (root / SOURCE).read_text().splitlines()[1:]
    assert lines == [
        "Types: deb",
        "URIs: http://x/packages/debian-13/",
        "Suites: ./",
        "Signed-By:",
        " -----BEGIN PGP PUBLIC KEY BLOCK-----",
        " .",
        " abc",
        " -----END PGP PUBLIC KEY BLOCK-----",
    ]
    assert 'Dir::Etc::sourcelist "/dev/null";' in (root / SETTING).read_text()
    assert not archive_source.settle(root, "http://x/packages/", KEY, writes=True)
    assert archive_source.paths("http://x") == [f"/{SETTING}", f"/{SOURCE}"]


def test_another_key_is_a_change(root: Path) -> None:
    archive_source.settle(root, "http://x", KEY, writes=True)
    assert archive_source.settle(root, "http://x", KEY.replace("abc", "abd"), writes=True)


def test_without_a_bundle_the_hosts_own_sources_count(root: Path) -> None:
    assert not archive_source.settle(root, "", "", writes=True)
    archive_source.settle(root, "http://x", KEY, writes=True)
    assert archive_source.settle(root, "", "", writes=True)
    assert not (root / SETTING).exists()
    assert not (root / SOURCE).exists()
    assert archive_source.paths("") == []


def test_a_check_writes_nothing(root: Path) -> None:
    assert archive_source.settle(root, "http://x", KEY, writes=False)
    assert not (root / SOURCE).exists()
