"""Stands in for a site's mail server: writes down what it is given, as SMTP has it (RFC 5321).

``python3 mail_server.py PORT FILE``
"""

import socketserver
import sys
from pathlib import Path


class Session(socketserver.StreamRequestHandler):
    """One client's mails."""

    def handle(self) -> None:
        """Greets, agrees to everything, and keeps lines until the client has gone."""
        self._say("220 mail.example.org")
        while line := self.rfile.readline().decode().strip():
            self._keep(line)
            if line == "DATA":
                self._say("354 go on")
                while (line := self.rfile.readline().decode().rstrip("\r\n")) != ".":
                    self._keep(line)
            elif line == "QUIT":
                self._say("221 bye")
                return
            self._say("250 mail.example.org")

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())

    @staticmethod
    def _keep(line: str) -> None:
        with Path(sys.argv[2]).open("a", encoding="utf-8") as notes:
            notes.write(f"{line}\n")


if __name__ == "__main__":
    socketserver.ThreadingTCPServer.allow_reuse_address = True
    socketserver.ThreadingTCPServer(("127.0.0.1", int(sys.argv[1])), Session).serve_forever()
