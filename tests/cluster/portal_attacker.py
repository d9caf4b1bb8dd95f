"""Somebody who speaks HTTP to the portal without a browser's manners: any path, any cookie, any header."""

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPSConnection
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.cluster.lab_cluster import Cluster
from tests.cluster.portal_lab import AUTHORITY, HOST, address, password_of

_HOPS = 12
_FORM = "application/x-www-form-urlencoded"
REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Message
    text: str


class Attacker:
    """A person's cookies, sent wherever they are useful."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        authority = directory / "authority.crt"
        authority.write_text(cluster.on(HOST, "cat", AUTHORITY))
        self._context = ssl.create_default_context(cafile=str(authority))
        self._address = address(cluster, HOST)
        self.cookies: dict[tuple[str, str], str] = {}
        """By name and path."""

    def log_in(self, name: str, *, next_page: str = "", password: str = "") -> Answer:
        """The answer to the form of the login."""
        page = f"/hub/login?{urlencode({'next': next_page})}" if next_page else "/hub/login"
        self.ask("GET", page)
        words = {
            "username": name,
            "password": password or password_of(name),
            "_xsrf": self.xsrf("/hub/login"),
        }
        return self.ask("POST", page, form=words)

    def follow(self, method: str, path: str, **more: Any) -> Answer:  # noqa: ANN401 - of ask
        """As a browser does it, as long as it stays at the portal."""
        answer = self.ask(method, path, **more)
        for _ in range(_HOPS):
            to = urlsplit(answer.headers.get("Location", ""))
            if answer.status not in REDIRECTS or to.netloc not in {"", HOST}:
                break
            answer = self.ask("GET", f"{to.path}?{to.query}" if to.query else to.path)
        return answer

    def ask(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        form: Mapping[str, str] | None = None,
        data: object = None,
        cookie: str = "",
        token: str | None = None,
    ) -> Answer:
        """One request; ``token`` is the one against forged requests, where it is not the right one."""
        body, kind = "", {}
        if form is not None:
            body, kind = urlencode(form), {"Content-Type": _FORM}
        elif data is not None:
            body, kind = json.dumps(data), {"Content-Type": "application/json"}
        xsrf = self.xsrf(urlsplit(path).path) if token is None else token
        sent = {"Host": HOST, "Cookie": self._sent(path, cookie), **kind}
        if method != "GET" and form is None and xsrf:
            sent["X-XSRFToken"] = xsrf
        line = HTTPSConnection(self._address, context=self._context, timeout=120)
        try:
            line.request(method, path, body=body or None, headers={**sent, **(headers or {})})
            answer = line.getresponse()
            text = answer.read().decode(errors="replace")
        finally:
            line.close()
        for header in answer.headers.get_all("Set-Cookie", []):
            self._keep(header)
        return Answer(answer.status, answer.headers, text)

    def xsrf(self, path: str) -> str:
        """The token against forged requests, for a page."""
        fit = [where for name, where in self.cookies if name == "_xsrf" and path.startswith(where)]
        return self.cookies["_xsrf", max(fit, key=len)] if fit else ""

    def value(self, name: str) -> str:
        """Of a cookie, whatever its path."""
        return next((value for (known, _), value in self.cookies.items() if known == name), "")

    def _sent(self, path: str, more: str) -> str:
        # The better path wins: a browser sends it first.
        order = sorted(self.cookies, key=lambda key: (not path.startswith(key[1]), -len(key[1])))
        return "; ".join([*filter(None, [more]), *(f"{key[0]}={self.cookies[key]}" for key in order)])

    def _keep(self, header: str) -> None:
        for name, one in SimpleCookie(header).items():
            key = (name, one["path"] or "/")
            if one.value:
                self.cookies[key] = one.value
            else:
                self.cookies.pop(key, None)
