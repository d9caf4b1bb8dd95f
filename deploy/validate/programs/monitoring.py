"""What the host that watches is asked, as root: Prometheus, Alertmanager, Grafana, and the ways in.

``ask`` is called with a dictionary and returns one::

    {"prometheus": {"url", "ready": reply, "runtime": reply, "targets": reply, "alerts": reply},
     "alertmanager": {"url", "ready": reply}, "grafana": {"url", "health": reply, "source": reply},
     "pages": {name: reply}, "doors": {host: reason}}

``unfit`` asks Prometheus alone which nodes are to be repaired::

    {"url", "alerts": reply, "targets": reply}

where a reply is ``{"code", "why", "data"}``: the status (null without an answer), why it is not a good one,
what was said, in as few words as the judges need. A password is read here or given apart from everything
else, sent to its daemon, and in no answer.
"""

from __future__ import annotations

import base64
import json
import socket
import ssl
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

_SECONDS = 10
_FIRST_SCRAPE_SECONDS = 50
"""Prometheus reads its lists of targets every 30 seconds, and asks within 15 whom it finds there."""
_DOOR_SECONDS = 5
_OK = 200
_ROUTE_PREFIX = "--web.route-prefix="
# What the package of Grafana's role is told: the account, its password's file, the uid of the source of data.
_GRAFANA_ADMIN = "admin"
_GRAFANA_PASSWORD_FILE = "/etc/grafana/admin_password"  # noqa: S105 - where it is, not what
_GRAFANA_SOURCE = "prometheus"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer; whoever is named there is not told a password."""

    def redirect_request(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - urllib's own
        return None


class Daemon:
    """A daemon of this host that speaks HTTP, and how it wants to be asked."""

    def __init__(self, place: dict[str, Any], secrets: dict[str, Any]) -> None:
        self.url = f"{'https' if place['has_tls'] else 'http'}://{_host(place['address'])}:{place['port']}{prefix(place)}"
        self.headers = _authorization(place.get("access") or {}, secrets)
        # It is asked by its address, on its own host; the certificate is for the name that people use.
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        tls = (place.get("access") or {}).get("tls_config") or {}
        if tls.get("cert_file"):
            context.load_cert_chain(tls["cert_file"], tls.get("key_file") or None)
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context), _NoRedirect()
        )

    def get(self, path: str, read: Callable[[Any], Any] | None = None) -> dict[str, Any]:
        """What it says to a request; ``read`` takes what is needed out of its JSON."""
        request = urllib.request.Request(self.url + path, headers=self.headers)  # noqa: S310 - its scheme is ours
        try:
            with self._opener.open(request, timeout=_SECONDS) as answer:
                code, text = answer.status, answer.read()
        except urllib.error.HTTPError as problem:
            code, text = problem.code, problem.read()
        except OSError as problem:
            reason = getattr(problem, "reason", problem)
            return {"code": None, "why": getattr(reason, "strerror", None) or str(reason), "data": None}
        except ValueError as problem:
            return {"code": None, "why": str(problem), "data": None}
        why = "" if code == _OK else f"HTTP status {code}"
        if read is None:
            return {"code": code, "why": why, "data": None}
        try:
            return {"code": code, "why": why, "data": read(json.loads(text))}
        except (ValueError, KeyError, TypeError, AttributeError):
            return {"code": code, "why": why or "its answer is not understood", "data": None}


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def prefix(place: dict[str, Any]) -> str:
    """What stands before all its paths, by its arguments, else by what people open it with."""
    for argument in place.get("arguments") or []:
        if str(argument).startswith(_ROUTE_PREFIX):
            return str(argument)[len(_ROUTE_PREFIX) :].rstrip("/")
    return urlsplit(place.get("external_url") or "").path.rstrip("/")


def _authorization(access: dict[str, Any], secrets: dict[str, Any]) -> dict[str, str]:
    """The header that lets somebody in, in the words of a scrape_config; none where it says nothing."""
    basic, other = access.get("basic_auth") or {}, access.get("authorization") or {}
    if basic.get("username"):
        word = secrets.get("password") or _text(basic.get("password_file"))
        pair = base64.b64encode(f"{basic['username']}:{word}".encode()).decode()
        return {"Authorization": f"Basic {pair}"}
    if secrets.get("credentials") or other.get("credentials_file"):
        word = secrets.get("credentials") or _text(other.get("credentials_file"))
        return {"Authorization": f"{other.get('type') or 'Bearer'} {word}"}
    return {}


def _text(path: str | None) -> str:
    """What a file of this host holds; nothing where it cannot be read."""
    try:
        with open(path or "", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def targets(said: dict[str, Any]) -> list[dict[str, str]]:
    """Whom Prometheus asks: job, name, whether it answers, and why not."""
    return [
        {
            "job": target["labels"].get("job", ""),
            "instance": target["labels"].get("instance", ""),
            "health": target["health"],
            "error": target["lastError"],
        }
        for target in said["data"]["activeTargets"]
    ]


def alerts(said: dict[str, Any]) -> list[dict[str, str]]:
    """The alerts that fire: which, where, how grave, since when, and what it says."""
    return [
        {
            "name": alert["labels"]["alertname"],
            "instance": alert["labels"].get("instance", ""),
            "severity": alert["labels"].get("severity", ""),
            "since": alert["activeAt"],
            "summary": alert["annotations"].get("summary", ""),
        }
        for alert in said["data"]["alerts"]
        if alert["state"] == "firing"
    ]


def repairs(said: dict[str, Any]) -> list[dict[str, Any]]:
    """The alerts of nodes that are to be repaired, those that are about to fire, too."""
    return [
        {
            "labels": alert["labels"],
            "summary": alert["annotations"].get("summary", ""),
            "fires": alert["state"] == "firing",
        }
        for alert in said["data"]["alerts"]
        if alert["labels"].get("repair") and alert["state"] in {"firing", "pending"}
    ]


def settled_targets(prometheus: Daemon, promised: int) -> dict[str, Any]:
    """The targets, once all are there and each was asked; of new ones Prometheus hears a little later."""
    ends = time.monotonic() + _FIRST_SCRAPE_SECONDS
    while True:
        reply = prometheus.get("/api/v1/targets?state=active", targets)
        found = reply["data"]
        is_early = found is not None and (
            len(found) < promised or any(target["health"] == "unknown" for target in found)
        )
        if not is_early or time.monotonic() > ends:
            return reply
        time.sleep(1)


def prometheus_says(prometheus: Daemon, promised: int) -> dict[str, Any]:
    """Whether it is ready, took its configuration, reaches its targets, and what it raises."""
    ready = prometheus.get("/-/ready")
    if ready["code"] is None:
        return {"url": prometheus.url, **dict.fromkeys(("ready", "runtime", "targets", "alerts"), ready)}
    return {
        "url": prometheus.url,
        "ready": ready,
        "runtime": prometheus.get(
            "/api/v1/status/runtimeinfo", lambda said: {"taken": said["data"]["reloadConfigSuccess"]}
        ),
        "targets": settled_targets(prometheus, promised),
        "alerts": prometheus.get("/api/v1/alerts", alerts),
    }


def grafana_says(place: dict[str, Any]) -> dict[str, Any]:
    """Whether it is well, and reaches its source of data."""
    access = {"basic_auth": {"username": _GRAFANA_ADMIN, "password_file": _GRAFANA_PASSWORD_FILE}}
    grafana = Daemon({**place, "access": access}, {})
    anybody = Daemon(place, {})
    return {
        "url": anybody.url,
        "health": anybody.get("/api/health", lambda said: {"database": said["database"]}),
        "source": grafana.get(
            f"/api/datasources/uid/{_GRAFANA_SOURCE}/health",
            lambda said: {"status": said.get("status", ""), "message": said.get("message", "")},
        ),
    }


def refusal(address: str, port: int) -> str:
    """Why no sshd answers there; empty when one does."""
    try:
        with socket.create_connection((address, port), _DOOR_SECONDS) as door:
            door.settimeout(_DOOR_SECONDS)
            said = door.recv(255)
    except OSError as problem:
        return problem.strerror or str(problem)
    return "" if said.startswith(b"SSH-") else "somebody answers, but no sshd"


def ask(arguments: dict[str, Any]) -> dict[str, Any]:
    """Everything once; null for what the site has not."""
    secrets = arguments.get("secrets") or {}
    answer: dict[str, Any] = {"prometheus": None, "alertmanager": None, "grafana": None, "pages": {}}
    if place := arguments.get("prometheus"):
        prometheus = Daemon(place, secrets.get("prometheus") or {})
        answer["prometheus"] = prometheus_says(prometheus, int(place.get("promised") or 0))
        answer["pages"]["Prometheus"] = prometheus.get("/")
    if place := arguments.get("alertmanager"):
        alertmanager = Daemon(place, secrets.get("alertmanager") or {})
        ready = alertmanager.get("/-/ready")
        answer["alertmanager"] = {"url": alertmanager.url, "ready": ready}
        answer["pages"]["Alertmanager"] = alertmanager.get("/")
    if place := arguments.get("grafana"):
        answer["grafana"] = grafana_says(place)
        answer["pages"]["Grafana"] = Daemon(place, {}).get("/login")
    answer["doors"] = {name: refusal(address, port) for name, address, port in arguments["doors"]}
    return answer


def unfit(arguments: dict[str, Any]) -> dict[str, Any]:
    """What Prometheus says of nodes that are to be repaired; whom it asks, because silence is no health."""
    secrets = arguments.get("secrets") or {}
    prometheus = Daemon(arguments["prometheus"], secrets.get("prometheus") or {})
    reply = prometheus.get("/api/v1/alerts", repairs)
    if reply["code"] is None:
        return {"url": prometheus.url, "alerts": reply, "targets": reply}
    asked = prometheus.get("/api/v1/targets?state=active", targets)
    return {"url": prometheus.url, "alerts": reply, "targets": asked}
