"""What runs in the portal's job: the hub hears of a port that is its own; it ends when the hub forgot it."""

import base64
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import uuid
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module

start_server = load_module("roles/jupyter_server/files/start_server.py")
_PYTHON = sys.executable


def answer(code: int) -> Exception:
    return urllib.error.HTTPError("https://login1:444/hub/api/user", code, "", Message(), None)


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (None, False),
        (answer(403), True),
        (answer(401), True),
        (answer(500), False),
        (answer(503), False),
        (urllib.error.URLError("refused"), False),
        (TimeoutError(), False),
        (http.client.BadStatusLine("x"), False),
    ],
)
def test_only_a_hub_that_says_so_has_forgotten_it(
    monkeypatch: pytest.MonkeyPatch, problem: Exception | None, *, expected: bool
) -> None:
    def ask_hub(path: str) -> None:
        assert path == "user"
        if problem:
            raise problem

    monkeypatch.setattr(start_server, "ask_hub", ask_hub)
    assert start_server.is_forgotten() is expected


def waited(monkeypatch: pytest.MonkeyPatch, said: list[bool], seconds: float) -> int:
    """The exit code of a server that would run that long, while the hub says this."""
    told = iter(said)
    monkeypatch.setattr(start_server, "_SECONDS_BETWEEN", 0.05)
    monkeypatch.setattr(start_server, "is_forgotten", lambda: next(told, False))
    with subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({seconds})"]) as server:
        code: int = start_server.wait_for(server)
    return code


def test_it_ends_when_it_is_forgotten_twice_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, [False, True, False, True, True], 600) == -15


def test_one_answer_in_between_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, [True, False, True, False], 1) == 0


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.socket() as one:
        one.bind(("", 0))
        one.listen()
        yield one


def test_a_port_is_ours_when_we_listen_there(listening: socket.socket) -> None:
    port = listening.getsockname()[1]
    assert start_server.is_ours(port)
    listening.close()
    assert not start_server.is_ours(port)


def test_a_port_of_another_is_not_ours(listening: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    other = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: other)
    assert not start_server.is_ours(listening.getsockname()[1])


def test_a_port_on_one_address_or_without_a_listener_leaves_room_for_others() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        assert not start_server.is_ours(one.getsockname()[1])
        one.listen()
        assert not start_server.is_ours(one.getsockname()[1])


def test_nobody_else_has_the_port_by_ipv6() -> None:
    with contextlib.ExitStack() as kept, socket.socket() as server:
        port = start_server.free_port(kept)
        server.bind(("", port))
        server.listen()
        if socket.has_dualstack_ipv6():
            with socket.socket(socket.AF_INET6) as other:
                # What would make room for another one, where anything did.
                other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                with pytest.raises(OSError, match="in use"):
                    other.bind(("::", port))


_SERVER = """\
#!{python} -I
import json, os, socket, sys, time, urllib.parse
from pathlib import Path

place = Path(os.environ["JUPYTER_RUNTIME_DIR"])
said = {{"place": str(place), "config": os.environ["JUPYTER_CONFIG_PATH"]}}
Path(os.environ["OUT"]).write_text(json.dumps(said))
port = urllib.parse.urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"]).port
listener = socket.socket()
{then}
"""
_COMES_UP = "listener.bind(('0.0.0.0', port)); listener.listen(); time.sleep(600)"
_PORT_IS_TAKEN = "sys.exit(5)"


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The environment of a job, and no hub; the path is the server's program."""
    program = tmp_path / "jupyterhub-singleuser"
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(start_server, "kernel_of_environment", lambda _: None)
    variables = dict(os.environ)
    os.environ |= {
        "OUT": str(tmp_path / "out"),
        "TMPDIR": str(tmp_path),
        "JUPYTERHUB_SERVICE_PREFIX": "/user/alice/",
    }
    for name in ("PORTAL_KEY", "PORTAL_CERTIFICATE", "PORTAL_AUTHORITY"):
        os.environ[name] = base64.b64encode(name.encode()).decode()
    handler, mask = signal.getsignal(signal.SIGTERM), os.umask(0o022)
    yield program
    os.environ.clear()
    os.environ |= variables
    signal.signal(signal.SIGTERM, handler)
    os.umask(mask)


def write_server(program: Path, then: str) -> None:
    program.write_text(_SERVER.format(python=_PYTHON, then=then))
    program.chmod(0o755)


def test_the_hub_hears_the_port_when_the_server_listens_there(
    monkeypatch: pytest.MonkeyPatch, job: Path
) -> None:
    told: list[int] = []

    def ask_hub(path: str, said: dict[str, int]) -> None:
        assert path == "portal/port"
        with socket.create_connection(("127.0.0.1", said["port"])):
            told.append(said["port"])
        raise answer(409)

    write_server(job, _COMES_UP)
    monkeypatch.setattr(start_server, "ask_hub", ask_hub)
    with pytest.raises(SystemExit, match="The portal expects no server"):
        start_server.main("config")
    assert len(told) == 1
    assert not start_server.is_ours(told[0])
    assert not Path(json.loads((job.parent / "out").read_text())["place"]).exists()


def test_the_hub_hears_nothing_when_the_server_did_not_get_its_port(
    monkeypatch: pytest.MonkeyPatch, job: Path
) -> None:
    def ask_hub(path: str, said: dict[str, int]) -> None:
        raise AssertionError(path, said)

    write_server(job, _PORT_IS_TAKEN)
    monkeypatch.setattr(start_server, "ask_hub", ask_hub)
    assert start_server.main("config") == 5


def test_a_path_of_a_socket_is_short_enough_whatever_the_directory_for_temporary_files(
    monkeypatch: pytest.MonkeyPatch, job: Path, tmp_path: Path
) -> None:
    deep = tmp_path / ("x" * 60)
    deep.mkdir()
    write_server(job, _PORT_IS_TAKEN)
    for directory in (deep, Path("/tmp")):
        os.environ["TMPDIR"] = str(directory)
        monkeypatch.setattr(tempfile, "tempdir", None)
        for name in ("PORTAL_KEY", "PORTAL_CERTIFICATE", "PORTAL_AUTHORITY"):
            os.environ[name] = ""
        start_server.main("config")
        said = json.loads((tmp_path / "out").read_text())
        assert Path(said["place"]).parent == Path("/tmp")
        assert said["config"].split(":")[0] == said["place"]
        # As jupyter_client calls them.
        path = f"{said['place']}/kernel-{uuid.uuid4()}-ipc-5"
        with socket.socket(socket.AF_UNIX) as one, pytest.raises(FileNotFoundError):
            one.connect(path)
