#!/usr/bin/python3
"""Stands in for Grafana: its settings, its first password, how another is set, and who is let in."""

import base64
import configparser
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

KEPT = Path("/var/lib/grafana/password")


def settings() -> configparser.ConfigParser:
    """What grafana.ini says."""
    read = configparser.ConfigParser(interpolation=None)
    read.read("/etc/grafana/grafana.ini")
    return read


class Page(BaseHTTPRequestHandler):
    """Lets the admin in, and nobody else."""

    def do_GET(self) -> None:
        """The two pages that there are."""
        word = base64.b64encode(f"admin:{KEPT.read_text()}".encode()).decode()
        is_admin = self.headers.get("Authorization") == f"Basic {word}"
        self.send_response(200 if is_admin or self.path == "/api/health" else 401)
        self.end_headers()


def serve() -> None:
    """The password of the settings counts at the first start."""
    if not KEPT.exists():
        place = settings()["security"]["admin_password"].removeprefix("$__file{").removesuffix("}")
        KEPT.write_text(Path(place).read_text())
    server = settings()["server"]
    HTTPServer((server["http_addr"], int(server["http_port"])), Page).serve_forever()


if __name__ == "__main__":
    if sys.argv[1] == "server":
        serve()
    elif sys.argv[-3:] == ["admin", "reset-admin-password", "--password-from-stdin"]:
        KEPT.write_text(sys.stdin.readline().rstrip("\n"))
    else:
        sys.exit(f"unknown: {sys.argv}")
