"""The Ansible that does what ``ansible-playbook`` beside this file is asked for.

``python server.py PLACE`` waits at ``PLACE/socket``. A request is a line of JSON,
``{"command": [...], "directory": "...", "environment": {...}}``; so is the answer,
``{"code": 0, "said": [...]}``: the exit status, and the files with what went to standard output and error.
Its settings are those of the first request. Playbooks are played one after the other; a check of syntax,
of which nothing is worth keeping, has a process of its own.
"""

import json
import os
import socket
import sys
from importlib import import_module
from itertools import count
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def main(place: Path) -> None:
    """Wait, be ansible-playbook, wait again, until one playbook does not come to its end."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place / "socket"))
        listener.listen()
        apart: list[int] = []
        for number in count():
            connection = listener.accept()[0]
            with connection, connection.makefile("rw", encoding="utf-8") as talk:
                request = json.loads(talk.readline())
                os.environ.update(request["environment"])
                os.chdir(request["directory"])
                # Now, with the environment of the first request: Ansible reads it while it is imported.
                playbook_server = import_module("deploy.run.playbook_server")
                is_apart = "--syntax-check" in request["command"]
                if is_apart and (child := os.fork()):
                    apart = [pid for pid in (*apart, child) if os.waitpid(pid, os.WNOHANG) == (0, 0)]
                    continue
                code, said = _play(playbook_server, request["command"], place / str(number))
                talk.write(json.dumps({"code": code, "said": said}) + "\n")
            if is_apart:
                os._exit(0)  # without removing what both processes share
            if code not in playbook_server.CAME_TO_ITS_END or not playbook_server.forget():
                return


def _play(playbook_server: ModuleType, command: list[str], place: Path) -> tuple[int, list[str]]:
    """Plays with the output in files: mitogen's process, which stays, would keep the asking one's open."""
    said = [f"{place}.out", f"{place}.err"]
    for stream, name in zip((sys.stdout, sys.stderr), said, strict=True):
        with Path(name).open("wb") as file:
            os.dup2(file.fileno(), stream.fileno())
    code: int = playbook_server.run(command)
    sys.stdout.flush()
    sys.stderr.flush()
    return code, said


if __name__ == "__main__":
    main(Path(sys.argv[1]))
