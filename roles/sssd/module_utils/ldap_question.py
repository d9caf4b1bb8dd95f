"""Asks an LDAP server whether it answers as a site says, over TLS alone (RFC 4511, as far as needed)."""

from __future__ import annotations

import os
import socket
import ssl
import tempfile
from urllib.parse import urlsplit

_SECONDS = 10
_PORTS = {"ldap": 389, "ldaps": 636}
_START_TLS = b"1.3.6.1.4.1.1466.20037"
_BIND, _BOUND, _SEARCH, _ENTRY, _DONE, _EXTENDED, _ANSWERED = 0x60, 0x61, 0x63, 0x64, 0x65, 0x77, 0x78
_INTEGER, _TEXT, _NUMBERED, _SEQUENCE, _PASSWORD, _NAME, _PRESENT = 0x02, 0x04, 0x0A, 0x30, 0x80, 0x80, 0x87
_TRUE = b"\x01\x01\xff"
_LONGEST = 1 << 20
_MEANINGS = {
    8: "it wants a stronger way to log in than a name and a password",
    32: "it has no such entry, or shows it to nobody who binds like this",
    48: "it takes no binding like this",
    49: "it refuses this name and password",
    50: "it does not show the entry to this name",
    52: "it is not available",
    53: "it is not willing to",
}
"""Result codes that a site can do something about; RFC 4511, appendix A."""


class Refusal(Exception):  # noqa: N818 - it is what the message says
    """Why a server cannot be used."""


def refusal(uri: str, base: str, name: str, password: str, authority: str) -> str:
    """Why people cannot be asked of a server; empty when they can.

    ``base`` is an entry that it has to show to ``name``, which is empty where it asks nobody who comes;
    ``authority`` are certificates as PEM text, empty for those that the machine trusts.
    """
    try:
        _ask(uri, base, name, password, authority)
    except Refusal as problem:
        return f"{uri}: {problem}"
    except ssl.SSLCertVerificationError as problem:
        return f"{uri}: its certificate is not accepted: {problem.verify_message or problem}"
    except ssl.SSLError as problem:
        return f"{uri}: no TLS: {problem.reason or problem}"
    except OSError as problem:
        return f"{uri}: {problem.strerror or problem}"
    return ""


def is_known(uri: str) -> bool:
    """Whether this machine has an address for a server."""
    try:
        return bool(socket.getaddrinfo(urlsplit(uri).hostname, None))
    except OSError:
        return False


def _ask(uri: str, base: str, name: str, password: str, authority: str) -> None:
    place = urlsplit(uri)
    host, port = place.hostname or "", place.port or _PORTS[place.scheme]
    trusted = _trusted(authority)
    with socket.create_connection((host, port), timeout=_SECONDS) as plain:
        if place.scheme == "ldap":
            plain.sendall(_message(_EXTENDED, _part(_NAME, _START_TLS)))
            _expect(plain, _ANSWERED, "StartTLS")
        with trusted.wrap_socket(plain, server_hostname=host) as server:
            credentials = _part(_INTEGER, b"\x03") + _part(_TEXT, name.encode())
            server.sendall(_message(_BIND, credentials + _part(_PASSWORD, password.encode())))
            _expect(server, _BOUND, f"binding as {name}" if name else "binding as nobody")
            server.sendall(_message(_SEARCH, _entry(base)))
            _expect(server, _DONE, f"asking for {base}")


def _trusted(authority: str) -> ssl.SSLContext:
    if not authority:
        context = ssl.create_default_context()
    else:
        descriptor, path = tempfile.mkstemp()
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(authority)
            context = ssl.create_default_context(cafile=path)
        except ssl.SSLError as problem:
            reason = f"the certificate authority that the site gives cannot be read: {problem.reason}"
            raise Refusal(reason) from None
        finally:
            os.unlink(path)  # noqa: PTH108
    # Python 3.13 asks more of an authority than sssd does.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    return context


def _entry(base: str) -> bytes:
    """A search for one entry and none of what it says: scope base, no aliases, one answer."""
    limits = _part(_INTEGER, b"\x01") + _part(_INTEGER, bytes([_SECONDS])) + _TRUE
    asked = _part(_PRESENT, b"objectClass") + _part(_SEQUENCE, _part(_TEXT, b"1.1"))
    return _part(_TEXT, base.encode()) + 2 * _part(_NUMBERED, b"\x00") + limits + asked


def _message(kind: int, content: bytes) -> bytes:
    return _part(_SEQUENCE, _part(_INTEGER, b"\x01") + _part(kind, content))


def _part(kind: int, content: bytes) -> bytes:
    """A part in BER, with its length."""
    size = len(content)
    if size < 0x80:  # noqa: PLR2004 - above, the first byte says how many bytes the length has
        return bytes([kind, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([kind, 0x80 | len(length)]) + length + content


def _expect(server: socket.socket, kind: int, what: str) -> None:
    """Reads until the answer of a kind; raises Refusal when it says no."""
    while True:
        _, message = _read(server)
        _, _, rest = _first(message)
        found, content, _ = _first(rest)
        if found == kind:
            break
        if found != _ENTRY:
            reason = f"{what}: it ended the conversation"
            raise Refusal(reason)
    _, code, rest = _first(content)
    number = int.from_bytes(code, "big")
    if number:
        _, _, rest = _first(rest)
        _, said, _ = _first(rest)
        own = said.decode("utf-8", "replace").strip()
        meaning = _MEANINGS.get(number, f"it answers with the result {number}")
        reason = f"{what}: {meaning}{f' ({own})' if own else ''}"
        raise Refusal(reason)


def _first(content: bytes) -> tuple[int, bytes, bytes]:
    """The first part of a content, and what follows it."""
    size, begin = content[1], 2
    if size & 0x80:
        begin += size & 0x7F
        size = int.from_bytes(content[2:begin], "big")
    return content[0], content[begin : begin + size], content[begin + size :]


def _read(server: socket.socket) -> tuple[int, bytes]:
    """One whole message."""
    head = _exactly(server, 2)
    size = head[1]
    if size & 0x80:
        size = int.from_bytes(_exactly(server, size & 0x7F), "big")
    if size > _LONGEST:
        reason = "what it answers is not LDAP"
        raise Refusal(reason)
    return head[0], _exactly(server, size)


def _exactly(server: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        piece = server.recv(size - len(content))
        if not piece:
            reason = "it closed the connection; is this an LDAP server that speaks TLS?"
            raise Refusal(reason)
        content += piece
    return content
