"""What apt and the environment are told of a proxy. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

_BEGIN = "# BEGIN proxy (kept by deploy: changes inside this block are lost)"
_END = "# END proxy"
_BLOCK = re.compile(rf"^{re.escape(_BEGIN)}\n.*?^{re.escape(_END)}\n", re.MULTILINE | re.DOTALL)
_ALWAYS_DIRECT = ("localhost", "127.0.0.1", "::1")


def has_password(url: str) -> bool:
    """Whether a URL carries credentials."""
    return "@" in urlsplit(url).netloc


def apt_text(http: str, https: str, direct: Sequence[str]) -> str:
    """The file for apt; empty without a proxy."""
    if not (http or https):
        return ""
    lines = [f'Acquire::http::Proxy "{http}";' if http else "", f'Acquire::https::Proxy "{https or http}";']
    # apt knows no networks and no domains here.
    hosts = [
        name for name in direct if not name.startswith(".") and "/" not in name and not _is_address(name)
    ]
    lines += [f'Acquire::{scheme}::Proxy::{host} "DIRECT";' for host in hosts for scheme in ("http", "https")]
    return "# Made by deploy; changes made here are undone by the next run.\n" + "".join(
        f"{line}\n" for line in lines if line
    )


def environment_text(before: str, http: str, https: str, direct: Sequence[str]) -> str:
    """The new text of /etc/environment; a proxy with a password is left out."""
    rest = _BLOCK.sub("", before)
    proxies = {"http_proxy": http, "https_proxy": https or http}
    values = {name: url for name, url in proxies.items() if url and not has_password(url)}
    if not values:
        return rest
    values["no_proxy"] = ",".join(dict.fromkeys([*_ALWAYS_DIRECT, *direct]))
    lines = [f"{spelled}={value}\n" for name, value in values.items() for spelled in (name, name.upper())]
    start = f"{rest}\n" if rest and not rest.endswith("\n") else rest
    return f"{start}{_BEGIN}\n{''.join(lines)}{_END}\n"


def _is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False
