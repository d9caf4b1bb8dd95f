"""What apt and the environment are told about a proxy. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

_MADE = "# Made by deploy; changes made here are undone by the next run."
# One that takes connections and says nothing is as good as none.
_FINDER = r"""#!/bin/bash
{made}
answers() {{
    exec 3<>"/dev/tcp/$1/$2" && printf 'HEAD / HTTP/1.0\r\n\r\n' >&3 &&
        read -r answer <&3 && [[ $answer == HTTP/* ]]
}}
export -f answers
for cache in {caches}; do
    host=${{cache%:*}} host=${{host#\[}} host=${{host%\]}}
    if timeout 2 bash -c 'answers "$@"' - "$host" "${{cache##*:}}" 2>/dev/null; then
        echo "http://$cache"
        exit
    fi
done
"""
_BEGIN = "# BEGIN proxy (kept by deploy: changes inside this block are lost)"
_END = "# END proxy"
_BLOCK = re.compile(rf"^{re.escape(_BEGIN)}\n.*?^{re.escape(_END)}\n", re.MULTILINE | re.DOTALL)
_PROXY = re.compile(r"^[ \t]*(?:export )?(?:https?|no)_proxy=", re.MULTILINE | re.IGNORECASE)
_ALWAYS_DIRECT = ("localhost", "127.0.0.1", "::1")


def has_password(url: str) -> bool:
    """Whether a URL carries credentials, however they are written."""
    return "@" in url


def apt_text(http: str, https: str, direct: Sequence[str], finder: str = "") -> str:
    """The file for apt; ``finder`` is the program that looks for a cache. Empty without proxy and cache."""
    # What apt finds wins over the proxy, and nothing found leaves it the proxy.
    lines = [f'Acquire::http::Proxy-Auto-Detect "{finder}";'] if finder else []
    if http or https:
        lines += _proxy_lines(http, https, direct)
    return _lines(lines)


def _proxy_lines(http: str, https: str, direct: Sequence[str]) -> list[str]:
    lines = [f'Acquire::http::Proxy "{http}";'] if http else []
    lines.append(f'Acquire::https::Proxy "{https or http}";')
    # apt knows no networks and no domains here, and its settings no name with colons.
    hosts = [name for name in direct if not name.startswith(".") and "/" not in name and ":" not in name]
    return lines + [
        f'Acquire::{scheme}::Proxy::{host} "DIRECT";' for host in hosts for scheme in ("http", "https")
    ]


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in (_MADE, *lines)) if lines else ""


def finder_text(caches: Sequence[str]) -> str:
    """The program that tells apt of the first cache that answers, and says nothing where none does."""
    if not caches:
        return ""
    asked = " ".join(f"'{url.removeprefix('http://').rstrip('/')}'" for url in caches)
    return _FINDER.format(made=_MADE, caches=asked)


def environment_text(before: str, http: str, https: str, direct: Sequence[str]) -> str:
    """The new text of /etc/environment; a proxy with a password is left out."""
    rest = _BLOCK.sub("", before)
    proxies = {"http_proxy": http, "https_proxy": https or http}
    values = {name: url for name, url in proxies.items() if url and not has_password(url)}
    if not values:
        return rest
    values["no_proxy"] = ",".join(dict.fromkeys([*_ALWAYS_DIRECT, *direct]))
    lines = [f"{spelled}={value}\n" for name, value in values.items() for spelled in (name, name.upper())]
    block = f"{_BEGIN}\n{''.join(lines)}{_END}\n"
    found = _BLOCK.search(before)
    if found and not _PROXY.search(before, found.end()):
        return before[: found.start()] + block + before[found.end() :]
    # Of two lines for a variable the last one counts.
    start = f"{rest}\n" if rest and not rest.endswith("\n") else rest
    return start + block
