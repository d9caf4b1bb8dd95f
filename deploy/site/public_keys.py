"""Public keys as a line of authorized_keys has them (sshd(8), AUTHORIZED_KEYS FILE FORMAT)."""

import base64
import binascii
import re
import struct

_TYPE = re.compile(
    r"(?:ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)|sk-ssh-ed25519@openssh\.com"
    r"|sk-ecdsa-sha2-nistp256@openssh\.com)(?:-cert-v01@openssh\.com)?"
)
_OPTIONS = re.compile(r'(?:[^\s",]|"(?:[^"\\]|\\.)*")+(?:,(?:[^\s",]|"(?:[^"\\]|\\.)*")+)*')
_LENGTH = struct.Struct(">I")


def is_public_key(line: str) -> bool:
    """Whether a line is a key that sshd takes, with or without options before it and a comment behind it."""
    words = line.split()
    if words and not _TYPE.fullmatch(words[0]):
        options = _OPTIONS.match(line)
        words = line[options.end() :].split() if options else []
    return len(words) > 1 and bool(_TYPE.fullmatch(words[0])) and _is_whole(*words[:2])


def _is_whole(kind: str, text: str) -> bool:
    """Whether the base64 text is the parts of a key, each after its length, the first of them its type."""
    try:
        blob = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    parts: list[bytes] = []
    while blob:
        if len(blob) < _LENGTH.size:
            return False
        (length,) = _LENGTH.unpack_from(blob)
        blob = blob[_LENGTH.size :]
        if kind.endswith("-cert-v01@openssh.com") and parts:
            return parts[0] == kind.encode()  # behind it are numbers, too, that have no length
        if len(blob) < length:
            return False
        parts.append(blob[:length])
        blob = blob[length:]
    return len(parts) > 1 and parts[0] == kind.encode()
