from pathlib import Path

from deploy.lab.apt_settings import kept_options, source_lines

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
    assert source_lines(TARGETS, "bookworm", "trixie", keyring) == [
        f"deb [signed-by={keyring}] http://mirror.example/debian/ trixie main contrib",
        f"deb [signed-by={keyring}] http://mirror.example/debian/ trixie-updates main",
        f"deb [signed-by={keyring}] http://mirror.example/security/ trixie-security main",
    ]


def test_a_release_that_is_not_stable_has_one_suite(tmp_path: Path) -> None:
    assert source_lines(TARGETS, "bookworm", "forky", tmp_path / "none", suites=("",)) == [
        "deb http://mirror.example/debian/ forky main contrib"
    ]


def test_nothing_of_debian_means_the_default_mirror(tmp_path: Path) -> None:
    assert source_lines("", "bookworm", "trixie", tmp_path / "none") == []


def test_a_missing_keyring_is_not_named(tmp_path: Path) -> None:
    assert source_lines(TARGETS, "bookworm", "bookworm", tmp_path / "none")[0] == (
        "deb http://mirror.example/debian/ bookworm main contrib"
    )


def test_only_what_fetching_needs_is_kept() -> None:
    assert kept_options(DUMP) == [
        'Acquire::Check-Valid-Until "false";',
        'Acquire::http::Proxy "http://proxy.example:3128";',
        'Acquire::http::Proxy::direct.example "DIRECT";',
    ]
