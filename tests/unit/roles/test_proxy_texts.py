import importlib
import socket
import subprocess
import threading
from pathlib import Path

import pytest

import tests.unit.roles.loading  # noqa: F401 - has Ansible find the roles' own code

module = importlib.import_module("ansible.module_utils.proxy_texts")

PROXY = "http://proxy.example:3128"
WITH_PASSWORD = "http://ops:k3Y@proxy.example:3128"  # noqa: S105
DIRECT = ["ctl1", "10.0.0.0/24", ".site.example", "10.0.0.1", "fd00::1", "mirror.site.example"]


def test_apt_asks_named_hosts_directly() -> None:
    assert module.apt_text(PROXY, "", DIRECT).splitlines()[1:] == [
        f'Acquire::http::Proxy "{PROXY}";',
        f'Acquire::https::Proxy "{PROXY}";',
        'Acquire::http::Proxy::ctl1 "DIRECT";',
        'Acquire::https::Proxy::ctl1 "DIRECT";',
        'Acquire::http::Proxy::10.0.0.1 "DIRECT";',
        'Acquire::https::Proxy::10.0.0.1 "DIRECT";',
        'Acquire::http::Proxy::mirror.site.example "DIRECT";',
        'Acquire::https::Proxy::mirror.site.example "DIRECT";',
    ]


def test_what_others_write_below_is_left_there_and_does_not_count() -> None:
    text = module.environment_text("LANG=C\n", PROXY, "", [])
    beside = f"{text}BASH_ENV=/x\n"
    assert module.environment_text(beside, PROXY, "", []) == beside, "it stays in its place"
    for line in ("http_proxy=http://other\n", "export HTTPS_PROXY=x\n", "  no_proxy=*\n"):
        after = module.environment_text(f"{text}{line}", PROXY, "", [])
        assert after == f"LANG=C\n{line}{text.removeprefix('LANG=C' + chr(10))}"
        assert module.environment_text(after, PROXY, "", []) == after


def test_the_environment_gets_both_spellings() -> None:
    text = module.environment_text("LANG=C", PROXY, "http://other:8080", DIRECT)
    assert text.startswith("LANG=C\n# BEGIN proxy")
    assert f"http_proxy={PROXY}\nHTTP_PROXY={PROXY}\nhttps_proxy=http://other:8080\n" in text
    assert f"no_proxy=localhost,127.0.0.1,::1,{','.join(DIRECT)}\n" in text
    assert module.environment_text(text, PROXY, "http://other:8080", DIRECT) == text


def test_without_a_proxy_nothing_is_left() -> None:
    assert module.apt_text("", "", DIRECT) == ""
    with_proxy = module.environment_text("LANG=C\n", PROXY, "", [])
    assert module.environment_text(with_proxy, "", "", []) == "LANG=C\n"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (PROXY, False),
        (WITH_PASSWORD, True),
        ("", False),
        # The part before it looks like a host and its port.
        ("http://web:2024#Secret@proxy.example:3128", True),
        ("http://web:2024?Secret@proxy.example:3128", True),
    ],
)
def test_a_password_is_noticed(*, url: str, expected: bool) -> None:
    assert module.has_password(url) is expected


def test_a_password_is_for_apt_alone() -> None:
    assert module.environment_text("", WITH_PASSWORD, "", []) == ""
    assert "k3Y" in module.apt_text(WITH_PASSWORD, "", [])
    mixed = module.environment_text("", PROXY, WITH_PASSWORD, [])
    assert "http_proxy" in mixed
    assert "k3Y" not in mixed


def answering(listener: socket.socket, text: bytes) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.recv(100)
        connection.sendall(text)


@pytest.mark.parametrize(("text", "is_found"), [(b"HTTP/1.0 406 no\r\n\r\n", True), (b"SSH-2.0\r\n", False)])
def test_the_first_cache_that_answers_is_found(tmp_path: Path, *, text: bytes, is_found: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_server(("127.0.0.1", 0)) as gone:
        dead = f"http://127.0.0.1:{gone.getsockname()[1]}"
        gone.close()
        there = f"http://127.0.0.1:{listener.getsockname()[1]}"
        finder = tmp_path / "finder"
        finder.write_text(module.finder_text([dead, there]))
        threading.Thread(target=answering, args=(listener, text), daemon=True).start()
        answer = subprocess.run(
            ["bash", finder, "http://archive.example"], capture_output=True, text=True, check=False
        )
    assert (answer.returncode, answer.stdout) == (0, f"{there}\n" if is_found else "")


def test_apt_looks_for_a_cache_before_it_takes_the_proxy() -> None:
    assert module.apt_text("", "", DIRECT, "/finder").splitlines()[1:] == [
        'Acquire::http::Proxy-Auto-Detect "/finder";'
    ]
    assert module.apt_text(PROXY, "", [], "/finder").splitlines()[1:] == [
        'Acquire::http::Proxy-Auto-Detect "/finder";',
        f'Acquire::http::Proxy "{PROXY}";',
        f'Acquire::https::Proxy "{PROXY}";',
    ]
    assert module.finder_text([]) == ""
