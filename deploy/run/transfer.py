"""A program on a host that data comes from or goes to, over plain ssh as the inventory says."""

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from deploy.run.ssh import Login, command
from deploy.site.inventory import Host

# Its first bytes are the program, what follows them is data.
_STARTER = "import sys; exec(sys.stdin.buffer.read({size}))"


class TransferError(Exception):
    """The program did not come to its end; the text is the last that it said."""


@contextmanager
def transfer(host: Host, login: Login, text: str) -> Iterator["subprocess.Popen[bytes]"]:
    """The program while it runs as root: what is written to its input is its data, as is its output.

    Raises TransferError, and NotByPlainSshError.
    """
    sent = text.encode()
    words = command(host, login, ("-IS", "-c", _STARTER.format(size=len(sent))))
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, start_new_session=True
        ) as run:
            assert run.stdin  # noqa: S101 - it was asked for
            try:
                # Whoever is gone says why at its end.
                with contextlib.suppress(BrokenPipeError):
                    run.stdin.write(sent)
                    run.stdin.flush()
                    yield run
                    run.stdin.close()
            except BaseException:
                run.kill()
                raise
            finally:
                with contextlib.suppress(BrokenPipeError):
                    run.stdin.close()
        said.seek(0)
        lines = said.read().decode(errors="replace").strip().splitlines()
    if run.returncode:
        raise TransferError(lines[-1] if lines else f"exit code {run.returncode}")
