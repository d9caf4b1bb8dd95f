"""Whether packages that are still missing can be fetched."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from ansible.module_utils.host_checks.at_once import ask
from ansible.module_utils.host_checks.finding import error, warning

_SECONDS = 2.0
_PORTS = {"http": 80, "https": 443, "ftp": 21}


def missing(packages: Iterable[str], dpkg: Path = Path("/var/lib/dpkg/info")) -> list[str]:
    """The packages that are not installed; told by dpkg's own lists, without starting a process."""
    # Of a package that was removed with its configuration kept, .list stays and .md5sums goes.
    there = {path.name.partition(".md5sums")[0].partition(":")[0] for path in dpkg.glob("*.md5sums")}
    return [name for name in packages if name not in there]


def listed_uris(listing: str) -> list[str]:
    """What `apt-get --print-uris update` would fetch."""
    return re.findall(r"^'([^']+)'", listing, re.MULTILINE)


def servers(uris: Iterable[str], options: str) -> dict[tuple[str, int], str]:
    """Where packages come from as (host, port) -> what it is: the sources' own hosts, or their proxies.

    ``options`` is the output of ``apt-config dump``.
    """
    proxies = dict(re.findall(r'^Acquire::(\S+) "(.*)";$', options, re.MULTILINE))
    if any(proxies.get(f"http::{name}") for name in ("Proxy-Auto-Detect", "ProxyAutoDetect")):
        return {}  # Only apt itself can say which way it will take.
    found: dict[tuple[str, int], str] = {}
    for uri in uris:
        parts = urlsplit(uri)
        if parts.scheme not in _PORTS or not parts.hostname:
            continue  # Discs and directories need no network.
        proxy = _proxy(proxies, parts.scheme, parts.hostname)
        if proxy:
            through = urlsplit(proxy)
            if through.hostname:
                place = (through.hostname, through.port or _PORTS.get(through.scheme, 80))
                found.setdefault(place, "the proxy")
        else:
            found.setdefault((parts.hostname, parts.port or _PORTS[parts.scheme]), "the package source")
    return found


def _proxy(options: Mapping[str, str], scheme: str, host: str) -> str:
    """The proxy for a host, as apt chooses it: DIRECT means none."""
    for name in (f"{scheme}::Proxy::{host}", f"{scheme}::Proxy", "http::Proxy"):
        if options.get(name):
            return "" if options[name] == "DIRECT" else options[name]
    return ""


def _answers(place: tuple[str, int]) -> str:
    """Why a server does not take a connection; empty when it does."""
    try:
        with socket.create_connection(place, timeout=_SECONDS):
            return ""
    except OSError as problem:
        return problem.strerror or str(problem)


def check_servers(
    found: Mapping[tuple[str, int], str], connect: Callable[[tuple[str, int]], str] = _answers
) -> Iterator[dict[str, str]]:
    """Servers that do not answer; all are asked at once. An error only when none of them does."""
    # Looking up a name has no timeout of its own.
    answers = ask(found, connect, _SECONDS + 1.0)
    silent = {place: reason for place in found if (reason := answers.get(place, "no answer in time"))}
    say = error if len(silent) == len(found) else warning
    for (host, port), reason in sorted(silent.items()):
        yield say(
            "package-source-unreachable",
            f"packages have to be installed, and {found[host, port]} {host}:{port} does not answer: {reason}",
            "on the machine: apt-get update; correct /etc/apt/sources.list*, the proxy or the network",
        )


def check_sources(uris: Iterable[str]) -> Iterator[dict[str, str]]:
    """A machine that knows no place to get packages from."""
    if not list(uris):
        yield error(
            "no-package-source",
            "packages have to be installed, and apt knows no source of packages",
            "name one in /etc/apt/sources.list.d/, then: apt-get update",
        )
