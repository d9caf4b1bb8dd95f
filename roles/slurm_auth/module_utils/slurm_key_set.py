"""The keys of auth/slurm: slurm.jwks as Slurm reads it, and what is signed with one of them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FILE = Path("/etc/slurm/slurm.jwks")
_ANYBODY = 0xFFFFFFFF
_NOBODY = 65534
_PROTOCOL = 0
"""In the place of the version of Slurm's protocol, which no release looks at here."""
_SECONDS = 10

Key = dict[str, Any]


def named(key: str) -> str:
    """The key's name, by which Slurm finds it; every token says it, and it says nothing of the key."""
    return hashlib.sha256(b"slurm.jwks " + key.encode()).hexdigest()[:16]


def entry(key: str) -> Key:
    """The key as Slurm reads it."""
    return {"alg": "HS256", "kty": "oct", "kid": named(key), "k": base64.b64encode(key.encode()).decode()}


def keys_of(text: str) -> list[Key]:
    """The keys of a file; none where it cannot be read, so that it is written anew."""
    try:
        found = json.loads(text)["keys"]
        return [key for key in found if isinstance(key["kid"], str) and isinstance(key["k"], str)]
    except (ValueError, KeyError, TypeError):
        return []


def signing(keys: Sequence[Key]) -> Key | None:
    """The key that is signed with."""
    return next((key for key in keys if key.get("use") == "default"), next(iter(keys), None))


def staged(there: Sequence[Key], key: str, stage: str, overlap: int, now: int) -> list[Key]:
    """The keys that a host is to have in a stage, from those that it has."""
    own, current = entry(key), signing(there)
    if current is not None and current["kid"] == own["kid"]:
        # What is left of another key ends by itself.
        return list(there)
    former = [each for each in there if each["kid"] != own["kid"] and each.get("exp", now) >= now]
    if stage == "accept" and current is not None:
        return [*former, own]
    ended = [{"exp": now + overlap, **{k: v for k, v in each.items() if k != "use"}} for each in former]
    return [{**own, "use": "default"}, *ended]


def written(keys: Sequence[Key]) -> str:
    """The text of the file."""
    return json.dumps({"keys": list(keys)}, indent=1) + "\n"


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def token(key: Key, now: int) -> str:
    """What Slurm signs for a process of nobody's, signed here."""
    head = {"alg": "HS256", "kid": key["kid"], "typ": "JWT"}
    claims = {
        "context": "sack",
        "exp": now + _SECONDS,
        "gid": _NOBODY,
        "host": "localhost",
        "iat": now,
        "ruid": _ANYBODY,
        "uid": _NOBODY,
        "ver": _PROTOCOL,
    }
    text = ".".join(_base64url(json.dumps(part, separators=(",", ":")).encode()) for part in (head, claims))
    signature = hmac.new(base64.b64decode(key["k"]), text.encode(), hashlib.sha256).digest()
    return f"{text}.{_base64url(signature)}"


def name_in(signed: str) -> str:
    """The name of the key that something was signed with."""
    head = signed.partition(".")[0]
    try:
        said = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
        return str(said.get("kid", ""))
    except (ValueError, AttributeError):
        return ""
