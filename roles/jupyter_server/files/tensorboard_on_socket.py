"""TensorBoard on a UNIX socket in its user's directory: on a port everybody on the node could read it."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tensorboard import default, program
from werkzeug.serving import make_server


def main(path: str, directory: str) -> None:
    """Answers until it is ended."""

    class OnSocket(program.TensorBoardServer):  # type: ignore[misc] - of no typed package
        """The server of TensorBoard's application."""

        def __init__(self, application: Any, _: Any) -> None:  # noqa: ANN401 - TensorBoard's
            self._server = make_server(f"unix://{path}", 0, application, threaded=True)

        def serve_forever(self) -> None:
            self._server.serve_forever()

        def get_url(self) -> str:
            return "http://socket:0/"

    os.umask(0o077)
    # Where it notes which ones run.
    tempfile.tempdir = str(Path(path).parent)
    board = program.TensorBoard(default.get_plugins(), server_class=OnSocket)
    # The program that would read faster listens on a port without asking who comes.
    board.configure(logdir=directory, load_fast="false")
    sys.exit(board.main())


if __name__ == "__main__":
    main(*sys.argv[1:3])
