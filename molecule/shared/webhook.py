"""Stands in for what a site reports alerts: writes what is posted, line by line.

``python3 webhook.py ADDRESS PORT FILE``
"""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


class Webhook(BaseHTTPRequestHandler):
    """Takes notes."""

    def do_POST(self) -> None:
        """The path and the text in one line; the text is JSON, which has no other line ends."""
        length = int(self.headers.get("Content-Length", "0"))
        text = self.rfile.read(length).decode().replace("\n", " ")
        with Path(sys.argv[3]).open("a", encoding="utf-8") as notes:
            notes.write(f"{self.path} {text}\n")
        self.send_response(200)
        self.end_headers()


if __name__ == "__main__":
    HTTPServer((sys.argv[1], int(sys.argv[2])), Webhook).serve_forever()
