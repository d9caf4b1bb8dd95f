"""Whether an account can still log in, by what sshd says of its configuration. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

ANYBODY = "user=nobody,host=192.0.2.1,addr=192.0.2.1,laddr=192.0.2.2,lport=22"
"""Somebody whom no Match block is meant for, from an address for documentation (RFC 5737)."""
KEYBOARD = "KbdInteractiveAuthentication"
"""Asked so, sshd has PAM's verdict from a process of its own, which is then what joins the job."""
_METHODS = {
    "gssapi-with-mic": "gssapiauthentication",
    "hostbased": "hostbasedauthentication",
    "keyboard-interactive": KEYBOARD.lower(),
    "password": "passwordauthentication",
    "publickey": "pubkeyauthentication",
}
"""sshd_config(5): what turns off each that AuthenticationMethods may ask for."""
_LISTS = frozenset({"allowusers", "denyusers", "allowgroups", "denygroups"})
_KEY_ONLY = frozenset({"without-password", "prohibit-password"})


@dataclass(frozen=True)
class Login:
    """An account that logs in: its name, its groups, where it comes from, and whether it has a key."""

    user: str
    groups: Sequence[str]
    address: str
    has_key: bool


def effective(text: str) -> dict[str, list[str]]:
    """The output of ``sshd -T``: values by name in small letters; those of a list are put together.

    Older OpenSSH writes the names in small letters, 10.6 as sshd_config(5) has them.
    """
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        spelled, _, value = line.partition(" ")
        name = spelled.lower()
        found.setdefault(name, []).extend(value.split() if name in _LISTS else [value])
    return found


def refusal(settings: Mapping[str, list[str]], login: Login) -> str:
    """Why an account could not log in; empty when it could."""
    if not login.has_key and not _passwords(settings):
        return "passwords are not accepted, and it has no key"
    if not asks_what_there_is(settings):
        return "AuthenticationMethods asks for what is turned off"
    if login.user == "root" and (reason := _refuses_root(settings, login)):
        return reason
    return _refused_by_lists(settings, login)


def _refused_by_lists(settings: Mapping[str, list[str]], login: Login) -> str:
    users, groups = (lambda name: _user(settings.get(name, []), login)), login.groups
    if users("denyusers") or _any(settings.get("denygroups", []), groups):
        return "DenyUsers or DenyGroups names it"
    if settings.get("allowusers") and not users("allowusers"):
        return "AllowUsers does not name it"
    if settings.get("allowgroups") and not _any(settings["allowgroups"], groups):
        return "AllowGroups names none of its groups"
    return ""


def asks_what_there_is(settings: Mapping[str, list[str]]) -> bool:
    """Whether AuthenticationMethods, where it is set, has a list of which nothing is turned off."""
    lists = " ".join(settings.get("authenticationmethods", ["any"])).split()
    return lists == ["any"] or any(
        all(settings.get(_METHODS.get(way.partition(":")[0], "")) != ["no"] for way in ways.split(","))
        for ways in lists
    )


def _passwords(settings: Mapping[str, list[str]]) -> bool:
    return any(settings.get(f"{way}authentication") == ["yes"] for way in ("password", "kbdinteractive"))


def _refuses_root(settings: Mapping[str, list[str]], login: Login) -> str:
    permit = (settings.get("permitrootlogin") or ["yes"])[0]
    if permit in {"no", "forced-commands-only"}:
        return f"PermitRootLogin is {permit}"
    return (
        f"PermitRootLogin is {permit}, and root has no key"
        if permit in _KEY_ONLY and not login.has_key
        else ""
    )


def _user(patterns: Iterable[str], login: Login) -> bool:
    """Sshd's patterns for users: a name, or a name and where it comes from."""
    for pattern in patterns:
        name, _, host = pattern.partition("@")
        if fnmatchcase(login.user, name) and (not host or fnmatchcase(login.address, host)):
            return True
    return False


def _any(patterns: Iterable[str], names: Iterable[str]) -> bool:
    listed = list(names)
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in listed)
