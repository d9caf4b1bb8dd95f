"""The fingerprint of an OpenPGP public key, read from the key itself: not every host has gpg."""

from __future__ import annotations

import base64
import binascii
import hashlib

_NO_KEY = "this is no OpenPGP public key of version 4"
_PUBLIC_KEY = 6
_VERSION_4 = 4
_NEW_FORMAT, _IS_PACKET = 0x40, 0x80


def binary(key: bytes) -> bytes:
    """A key without its ASCII armor; one that has none as it is. Raises ValueError."""
    if not key.lstrip().startswith(b"-----BEGIN PGP PUBLIC KEY BLOCK"):
        return key
    lines = [line.strip() for line in key.strip().splitlines()]
    # The headers end with an empty line; a line that starts with "=" is the checksum behind the data.
    start = lines.index(b"") + 1 if b"" in lines else 1
    data = [line for line in lines[start:] if line and not line.startswith((b"=", b"-----"))]
    try:
        return base64.b64decode(b"".join(data), validate=True)
    except binascii.Error as problem:
        raise ValueError(str(problem)) from None


def fingerprint(key: bytes) -> str:
    """The fingerprint of the first key in a file, in capital letters. Raises ValueError for anything else."""
    data = binary(key)
    try:
        body = _first_packet(data)
    except IndexError:
        body = b""
    if not body or body[0] != _VERSION_4:
        raise ValueError(_NO_KEY)
    return hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body).hexdigest().upper()  # noqa: S324


def _first_packet(data: bytes) -> bytes:
    """The body of the first packet, if that is a public key."""
    head, first = data[0], data[1]
    if not head & _IS_PACKET:
        return b""
    if head & _NEW_FORMAT:
        kind = head & 0x3F
        if first < 192:  # noqa: PLR2004 - the lengths of RFC 4880, 4.2.2
            start, size = 2, first
        elif first < 224:  # noqa: PLR2004
            start, size = 3, ((first - 192) << 8) + data[2] + 192
        else:
            start, size = 6, int.from_bytes(data[2:6], "big")
    else:
        kind, octets = (head >> 2) & 0x0F, 1 << (head & 3)
        start, size = 1 + octets, int.from_bytes(data[1 : 1 + octets], "big")
    return data[start : start + size] if kind == _PUBLIC_KEY else b""
