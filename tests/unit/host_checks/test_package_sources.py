import socket
from pathlib import Path

import pytest

from tests.unit.host_checks.checks import part, said

sources = part("package_sources")

LISTING = """\
'http://deb.example.org/debian/dists/trixie/InRelease' deb.example.org_InRelease 0
'https://security.example.org:8443/dists/x/InRelease' security.example.org_InRelease 0
'file:/srv/mirror/dists/x/InRelease' srv_InRelease 0
"""


def test_missing_packages_are_told_by_dpkgs_lists(tmp_path: Path) -> None:
    for name in ("munge.md5sums", "munge.list", "slurmd:amd64.md5sums", "chrony.list", "slurm-client.list"):
        (tmp_path / name).touch()
    found = sources.missing(["munge", "slurmd", "chrony", "slurm-client", "slurm"], tmp_path)
    assert found == ["chrony", "slurm-client", "slurm"]


def test_servers_of_sources() -> None:
    assert sources.servers(sources.listed_uris(LISTING), "") == {
        ("deb.example.org", 80): "the package source",
        ("security.example.org", 8443): "the package source",
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ('Acquire::http::Proxy "http://proxy.example:3128/";', ("proxy.example", 3128)),
        ('Acquire::http::Proxy "http://proxy.example";', ("proxy.example", 80)),
        (
            'Acquire::http::Proxy "http://p:1";\nAcquire::http::Proxy::deb.example.org "DIRECT";',
            ("deb.example.org", 80),
        ),
        ('Acquire::http::Proxy "";', ("deb.example.org", 80)),
    ],
)
def test_a_proxy_is_asked_instead(options: str, expected: tuple[str, int]) -> None:
    assert list(sources.servers(["http://deb.example.org/x"], options)) == [expected]


def test_a_proxy_that_only_apt_can_find_is_not_guessed() -> None:
    assert sources.servers(["http://deb.example.org/x"], 'Acquire::http::Proxy-Auto-Detect "/bin/x";') == {}
    assert list(sources.check_servers({})) == []


def test_one_that_answers_makes_the_others_a_warning() -> None:
    found = {("a", 80): "the package source", ("b", 443): "the proxy"}
    assert list(sources.check_servers(found, lambda _: "")) == []
    (finding,) = sources.check_servers(found, lambda place: "refused" if place[0] == "b" else "")
    assert finding["severity"] == "warning"
    assert "the proxy b:443 does not answer: refused" in finding["message"]
    assert (
        said(sources.check_servers(found, lambda _: "refused"))
        == [("error", "package-source-unreachable")] * 2
    )


def test_real_connections() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = ("127.0.0.1", listener.getsockname()[1])
        assert list(sources.check_servers({place: "the package source"})) == []
    assert said(sources.check_servers({place: "the package source"})) == [
        ("error", "package-source-unreachable")
    ]


def test_no_source_at_all() -> None:
    assert said(sources.check_sources([])) == [("error", "no-package-source")]
    assert list(sources.check_sources(["file:/srv/mirror"])) == []
