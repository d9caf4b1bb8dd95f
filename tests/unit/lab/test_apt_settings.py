import platform
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.errors import DeployError
from deploy.lab.apt_settings import DEBIAN, UBUNTU, kept_options, read_sources, source_lines

ROWS = (
    ("Packages", "Debian", "http://mirror.example/debian/", "bookworm", "main"),
    ("Packages", "Debian", "http://mirror.example/debian/", "bookworm", "contrib"),
    ("Packages", "Debian", "http://mirror.example/debian/", "bookworm", "main"),
    ("Sources", "Debian", "http://mirror.example/debian/", "bookworm", "non-free"),
    ("Packages", "Debian", "http://mirror.example/debian/", "bookworm-updates", "main"),
    ("Packages", "Debian", "http://mirror.example/security/", "bookworm-security", "main"),
    ("Packages", "Debian Backports", "http://mirror.example/debian/", "bookworm-backports", "main"),
    ("Packages", "Somebody", "http://vendor.example/", "bookworm", "main"),
    ("Packages", "Debian", "file:/media/disc/", "bookworm", "main"),
)
TARGETS = "\n".join("\t".join(row) for row in ROWS) + "\n"
DUMP = """\
APT::Install-Recommends "1";
Acquire "";
Acquire::Check-Valid-Until "false";
Acquire::http::Proxy "http://proxy.example:3128";
Acquire::http::Proxy::direct.example "DIRECT";
Acquire::https::Proxy "";
Acquire::Languages:: "none";
"""


def test_another_release_comes_from_the_same_mirrors(tmp_path: Path) -> None:
    keyring = tmp_path / "keyring.gpg"
    keyring.touch()
    assert source_lines(TARGETS, "bookworm", "trixie", replace(DEBIAN, keyring=keyring)) == [
        f"deb [signed-by={keyring}] http://mirror.example/debian/ trixie main contrib",
        f"deb [signed-by={keyring}] http://mirror.example/debian/ trixie-updates main",
        f"deb [signed-by={keyring}] http://mirror.example/security/ trixie-security main",
    ]


NO_KEYRING = replace(DEBIAN, keyring=Path("/none"))


def test_ubuntus_releases_come_from_its_own_mirrors_where_this_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "debian"})
    archive = replace(UBUNTU, keyring=tmp_path / "keyring.gpg")
    with pytest.raises(DeployError) as told:
        read_sources("noble", archive)
    (finding,) = told.value.findings
    assert (finding.reference, finding.hint) == ("lab-keyring-missing", "apt-get install ubuntu-keyring")
    archive.keyring.touch()
    where = f"deb [signed-by={archive.keyring}] http://"
    parts = "main restricted universe multiverse"
    assert read_sources("noble", archive) == [
        f"{where}archive.ubuntu.com/ubuntu noble {parts}",
        f"{where}archive.ubuntu.com/ubuntu noble-updates {parts}",
        f"{where}security.ubuntu.com/ubuntu noble-security {parts}",
    ]


def test_on_ubuntu_they_come_from_this_machines_mirrors(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = TARGETS.replace("Debian", "Ubuntu").replace("bookworm", "jammy")
    assert source_lines(targets, "jammy", "noble", replace(UBUNTU, keyring=Path("/none")))[0] == (
        "deb http://mirror.example/debian/ noble main contrib"
    )
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "ubuntu"})
    assert read_sources("trixie", DEBIAN) == []


def test_a_release_that_is_not_stable_has_one_suite() -> None:
    assert source_lines(TARGETS, "bookworm", "forky", NO_KEYRING, suites=("",)) == [
        "deb http://mirror.example/debian/ forky main contrib"
    ]


def test_nothing_of_debian_means_the_default_mirror() -> None:
    assert source_lines("", "bookworm", "trixie") == []


def test_a_missing_keyring_is_not_named() -> None:
    assert source_lines(TARGETS, "bookworm", "bookworm", NO_KEYRING)[0] == (
        "deb http://mirror.example/debian/ bookworm main contrib"
    )


def test_only_what_fetching_needs_is_kept() -> None:
    assert kept_options(DUMP) == [
        'Acquire::Check-Valid-Until "false";',
        'Acquire::http::Proxy "http://proxy.example:3128";',
        'Acquire::http::Proxy::direct.example "DIRECT";',
    ]
