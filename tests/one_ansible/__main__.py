"""``python -m tests.one_ansible PROGRAM …``: it finds our ``ansible-playbook`` before the real one."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def main(command: list[str]) -> int:
    """Starts the server and the program; returns the program's exit status."""
    with tempfile.TemporaryDirectory(prefix="one-ansible-") as place:
        server = [sys.executable, str(HERE / "server.py"), place]
        with subprocess.Popen(server, stdin=subprocess.DEVNULL) as ansible:
            path = os.pathsep.join((str(HERE), str(Path(sys.executable).parent), os.environ["PATH"]))
            own = {"PATH": path, "DEPLOY_ONE_ANSIBLE": place}
            try:
                return subprocess.run(command, env={**os.environ, **own}, check=False).returncode
            finally:
                ansible.terminate()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
