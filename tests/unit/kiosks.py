"""A daemon of Slurm as far as its sack.socket shows it: it signs for whoever asks, and judges signatures."""

import socket
import struct
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_CREATE, _VERIFY = 64001, 64002


@contextmanager
def kiosk(path: Path, *, signs: str, believes: Collection[str]) -> Iterator[None]:
    """Answers at the path as src/plugins/auth/slurm/sack.c does; what is framed otherwise gets nothing."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(path))
    path.chmod(0o777)
    server.listen()

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection, suppress(OSError):
                    connection.sendall(_answer(connection, signs, believes))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()
        path.unlink()


def _answer(connection: socket.socket, signs: str, believes: Collection[str]) -> bytes:
    head = connection.recv(10, socket.MSG_WAITALL)
    if len(head) < 10:
        return b""
    _, length, what = struct.unpack(">HII", head)
    content = connection.recv(length - 8, socket.MSG_WAITALL)
    if what == _CREATE and len(content) == 8:
        text = signs.encode() + b"\0"
        return struct.pack(">I", len(text)) + text
    if (
        what == _VERIFY
        and struct.unpack(">I", content[:4])[0] == len(content) - 4
        and content.endswith(b"\0")
    ):
        is_believed = content[4:-1].decode() in believes
        return struct.pack(">I", 0 if is_believed else 0xFFFFFFFF)
    return b""
