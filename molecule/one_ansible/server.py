"""One Ansible for all playbooks of a scenario, so that imports and connections are made once.

``python server.py PLACE`` waits at ``PLACE/socket``; what its playbooks say goes to its own output. A request
is a line of JSON: ``{"command": [...], "directory": "...", "environment": {...}}``; the answer is the exit
status, and where in the two files of its output, ``PLACE/out`` and ``PLACE/err``, the playbook's own begins.

The settings of Ansible are those of the first request. Only ``ansible-playbook`` beside this file asks.
"""

import json
import os
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def main(place: Path) -> None:
    """Wait, be ansible-playbook, wait again, until one playbook does not come to its end."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place / "socket"))
        listener.listen()
        while True:
            with listener.accept()[0] as connection, connection.makefile("rw", encoding="utf-8") as talk:
                request = json.loads(talk.readline())
                os.environ.update(request["environment"])
                os.chdir(request["directory"])
                # With the environment of the first request, which Ansible reads while it is imported.
                from deploy.run import warm

                began = [os.fstat(stream.fileno()).st_size for stream in (sys.stdout, sys.stderr)]
                code = warm.run(request["command"])
                sys.stdout.flush()
                sys.stderr.flush()
                talk.write(json.dumps({"code": code, "began": began}) + "\n")
            if code not in warm.CAME_TO_ITS_END:
                return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
