"""Public keys as a line of authorized_keys has them (sshd(8), AUTHORIZED_KEYS FILE FORMAT)."""

import base64
import binascii
import re
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from ipaddress import ip_network

_TYPE = re.compile(
    r"(?:ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)|sk-ssh-ed25519@openssh\.com"
    r"|sk-ecdsa-sha2-nistp256@openssh\.com)(?:-cert-v01@openssh\.com)?"
)
_OPTIONS = re.compile(r'(?:[^\s",]|"(?:[^"\\]|\\.)*")+(?:,(?:[^\s",]|"(?:[^"\\]|\\.)*")+)*')
_OPTION = re.compile(r'(?:[^\s",]|"(?:[^"\\]|\\.)*")+')
_FLAGS = frozenset(
    f"{no}{word}"
    for word in ("agent-forwarding", "port-forwarding", "pty", "user-rc", "x11-forwarding")
    for no in ("", "no-")
) | {"cert-authority", "restrict", "no-touch-required", "verify-required"}
_VALUED = frozenset(
    {"command", "environment", "expiry-time", "from", "permitlisten", "permitopen", "principals", "tunnel"}
)
_PATTERN = re.compile(r"!?[A-Za-z0-9*?.:_-]+")
_MOMENT = re.compile(r"\d{8}(?:\d{4}(?:\d{2})?)?Z?")
_LENGTH = struct.Struct(">I")


def is_public_key(line: str) -> bool:
    """Whether a line is a key that sshd takes, with or without options before it and a comment behind it."""
    words = line.split()
    if words and not _TYPE.fullmatch(words[0]):
        options = _OPTIONS.match(line)
        words = line[options.end() :].split() if options else []
    return len(words) > 1 and bool(_TYPE.fullmatch(words[0])) and _is_whole(*words[:2])


def restrictions(line: str) -> list[str]:
    """What stands before the key: from="192.0.2.0/24", expiry-time="20271231", restrict and the like."""
    words = line.split()
    options = None if not words or _TYPE.fullmatch(words[0]) else _OPTIONS.match(line)
    return _OPTION.findall(options.group()) if options else []


def restriction_faults(line: str, now: datetime) -> Iterator[tuple[str, bool]]:
    """What is wrong with a key's restrictions, and whether sshd would refuse the key for it."""
    for option in restrictions(line):
        name, equals, value = option.partition("=")
        value = value.strip('"')
        if name.lower() not in (_VALUED if equals else _FLAGS):
            yield f"{option} is no restriction that sshd knows", True
        elif name.lower() == "from":
            wrong = [pattern for pattern in value.split(",") if not _is_place(pattern)]
            yield from ((f"from={pattern} is no address, network or name", True) for pattern in wrong)
        elif name.lower() == "expiry-time":
            if not (moment := _moment(value)):
                yield f"expiry-time={value} is no date, as in expiry-time=20271231", True
            elif moment <= now:
                yield f"it was valid until {moment.date().isoformat()}", False


def _is_place(pattern: str) -> bool:
    """Whether sshd takes it for an address, a network or a pattern of names or addresses."""
    if "/" not in pattern:
        return bool(_PATTERN.fullmatch(pattern))
    try:
        ip_network(pattern.removeprefix("!"))  # sshd refuses bits of a host, too
    except ValueError:
        return False
    return True


def _moment(text: str) -> datetime | None:
    """When a key ends, to the day."""
    if not _MOMENT.fullmatch(text):
        return None
    try:
        return datetime.strptime(text[:8], "%Y%m%d").replace(tzinfo=UTC)
    except ValueError:
        return None


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
