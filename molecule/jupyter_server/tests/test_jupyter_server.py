"""Users run what is installed, root alone can change it, and TensorBoard opens no port."""

import json

from molecule.conftest import On

_PYTHON = "/opt/jupyter-server/environment/bin/python"
_AS_ALICE = ("setpriv", "--reuid=alice", "--regid=alice", "--clear-groups", "env", "HOME=/home/alice")
_BOARD = """\
cd /home/alice
{python} -I /usr/local/lib/jupyter-server/tensorboard_on_socket.py /home/alice/board . &
board=$!
for try in $(seq 600); do [ -S board ] && break; sleep 0.2; done
{python} -I -c '
import http.client, socket
line = http.client.HTTPConnection("board")
line.sock = socket.socket(socket.AF_UNIX)
line.sock.connect("board")
line.request("GET", "/")
print(line.getresponse().read().decode())
'
stat --format=mode=%a board
ss --listening --tcp --numeric --processes --no-header | grep pid=$board, || echo no port
kill $board
"""


def test_the_parts_are_there(on: On, machine: str) -> None:
    for program in ("jupyterhub-singleuser", "jupyter-lab", "tensorboard"):
        assert on(machine, *_AS_ALICE, f"/opt/jupyter-server/environment/bin/{program}", "--version").stdout
    said = on(machine, *_AS_ALICE, _PYTHON, "-m", "pip", "check").stdout
    assert said == "No broken requirements found.\n"


def test_users_change_nothing(on: On, machine: str) -> None:
    others = "find -L /opt/jupyter-server /usr/local/lib/jupyter-server ! -user root -o -perm /022 ! -type l"
    assert on(machine, "sh", "-c", others).stdout == ""


def test_programs_are_data_of_the_launcher(on: On, machine: str) -> None:
    said = json.loads(on(machine, "cat", "/usr/local/lib/jupyter-server/jupyter_server_config.json").stdout)
    board = said["ServerProxy"]["servers"]["tensorboard"]
    assert board["launcher_entry"]["title"] == "TensorBoard"
    assert board["unix_socket"] is True
    assert "{unix_socket}" in board["command"]


def test_tensorboard_answers_on_a_socket_of_its_user_alone(on: On, machine: str) -> None:
    said = on(machine, *_AS_ALICE, "sh", "-c", _BOARD.format(python=_PYTHON)).stdout
    assert "<title>TensorBoard</title>" in said
    assert "mode=700" in said
    assert "no port" in said


def test_a_job_that_no_hub_expects_ends_and_leaves_nothing(on: On, machine: str) -> None:
    pem = "LS0tLS0K"
    names = ("PORTAL_KEY", "PORTAL_CERTIFICATE", "PORTAL_AUTHORITY")
    environment = [f"{name}={pem}" for name in names] + ["JUPYTERHUB_API_URL=https://127.0.0.1:9/hub/api"]
    done = on(
        machine,
        *_AS_ALICE,
        *environment,
        *(_PYTHON, "-I", "/usr/local/lib/jupyter-server/start_server.py", "/nowhere"),
        check=False,
    )
    assert done.returncode != 0
    assert on(machine, "sh", "-c", "ls -d /tmp/portal-* || true").stdout == ""
