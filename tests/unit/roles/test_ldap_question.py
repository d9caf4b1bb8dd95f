"""Whether a server of the directory can be used: over TLS, by this authority, name and password."""

import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module

question = load_module("roles/sssd/module_utils/ldap_question.py")
BASE, NAME, PASSWORD = "dc=site,dc=example", "cn=reader", "of-the-reader"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two authorities, each of which is its own server's certificate."""
    directory = tmp_path_factory.mktemp("certificates")
    for name in ("own", "other"):
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
        command += ["-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost"]
        command += ["-keyout", f"{directory}/{name}.key", "-out", f"{directory}/{name}.crt"]
        subprocess.run(command, check=True, capture_output=True)
    return directory


def answer(kind: int, code: int, said: str = "") -> bytes:
    part: Callable[[int, bytes], bytes] = question._part
    result = part(0x0A, bytes([code])) + part(0x04, b"") + part(0x04, said.encode())
    return bytes(question._message(kind, result))


@contextmanager
def server(place: Path, *, tls: int = 0, bound: int = 0, found: int = 0, asked: list[bytes]) -> Iterator[str]:
    """A server that answers with these results; yields its address and notes what it was asked."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place / "own.crt", place / "own.key")
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            try:
                with connection:
                    asked.append(connection.recv(4096))
                    connection.sendall(answer(0x78, tls, "as I like"))
                    if tls:
                        return
                    with context.wrap_socket(connection, server_side=True) as private:
                        asked.append(private.recv(4096))
                        private.sendall(answer(0x61, bound))
                        asked.append(private.recv(4096))
                        entry = question._message(0x64, question._part(0x04, b"x" * 300))
                        private.sendall(entry + answer(0x65, found))
            except OSError:
                return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"ldap://localhost:{listening.getsockname()[1]}"
        thread.join(20)


def refused(place: Path, results: dict[str, int] | None = None, *, authority: str = "own") -> str:
    asked: list[bytes] = []
    with server(place, asked=asked, **(results or {})) as uri:
        text = (place / f"{authority}.crt").read_text() if authority else ""
        reason: str = question.refusal(uri, BASE, NAME, PASSWORD, text)
    assert not any(PASSWORD.encode() in part for part in asked[:1])
    return reason.partition(": ")[2]


def test_a_server_that_shows_the_entry_is_used(place: Path) -> None:
    assert refused(place) == ""


@pytest.mark.parametrize(
    ("results", "reason"),
    [
        ({"tls": 2}, "StartTLS: it answers with the result 2 (as I like)"),
        ({"bound": 49}, "binding as cn=reader: it refuses this name and password"),
        ({"found": 32}, "asking for dc=site,dc=example: it has no such entry"),
    ],
)
def test_what_it_refuses_is_said(place: Path, results: dict[str, int], reason: str) -> None:
    assert refused(place, results).startswith(reason)


@pytest.mark.parametrize("authority", ["other", ""])
def test_another_authority_is_not_accepted(place: Path, authority: str) -> None:
    assert refused(place, authority=authority).startswith("its certificate is not accepted: self")


def test_a_server_that_is_away_is_said(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    text = (place / "own.crt").read_text()
    reason = question.refusal(f"ldaps://localhost:{port}", BASE, NAME, PASSWORD, text)
    assert reason == f"ldaps://localhost:{port}: Connection refused"


def test_a_name_without_an_address_is_not_known() -> None:
    assert question.is_known("ldaps://127.0.0.1:636")
    assert not question.is_known("ldaps://nowhere.invalid")


def test_an_authority_that_is_none_is_said() -> None:
    text = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"
    reason = question.refusal("ldaps://localhost", BASE, NAME, PASSWORD, text)
    assert "the certificate authority that the site gives cannot be read" in reason
