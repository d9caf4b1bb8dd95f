"""What goes out goes through the proxy, the cluster is reached without it, and a password stays with root."""

from base64 import b64encode
from collections.abc import Iterator

import pytest

from molecule.conftest import MACHINES, Converge, On

OUTSIDE = "http://somewhere.example/index"
FETCH = "import urllib.request, sys; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())"


def as_user(on: On, machine: str, url: str) -> str:
    """What a user's login shell fetches."""
    return on(machine, "su", "--login", "admin", "--command", f'python3 -c "{FETCH}" {url}').stdout.strip()


def with_apt(on: On, machine: str, url: str) -> str:
    """What apt itself fetches."""
    on(machine, "rm", "--force", "/root/fetched")
    on(machine, "/usr/lib/apt/apt-helper", "download-file", url, "/root/fetched")
    return on(machine, "cat", "/root/fetched").stdout


def test_everybody_goes_out_through_the_proxy(on: On, machine: str) -> None:
    assert as_user(on, machine, OUTSIDE) == f"{OUTSIDE} -"


def test_apt_does_too(on: On, machine: str) -> None:
    assert with_apt(on, machine, OUTSIDE) == f"{OUTSIDE} -"


def test_the_cluster_is_reached_without_it(on: On, machine: str) -> None:
    page = f"http://molecule-proxy-{machine}:8080/"
    assert "Directory listing" in as_user(on, machine, page)
    assert "Directory listing" in with_apt(on, machine, page)


@pytest.fixture
def secret(converge: Converge) -> Iterator[str]:
    """What is said while a proxy with a password is set up."""
    answer = converge("--diff", "-vv", url="http://ops:k3Y@localhost:3128")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    yield answer.stdout + answer.stderr
    assert converge("--diff", "-vv", url="http://localhost:3128").returncode == 0


def test_a_password_is_used_by_apt_and_seen_by_nobody(on: On, secret: str) -> None:
    assert "k3Y" not in secret
    for machine in MACHINES:
        assert with_apt(on, machine, OUTSIDE) == f"{OUTSIDE} Basic {b64encode(b'ops:k3Y').decode()}"
        readable = on(machine, "su", "--login", "admin", "--command", "grep -rs k3Y /etc; env", check=False)
        assert "k3Y" not in readable.stdout
        assert "http_proxy" not in readable.stdout
