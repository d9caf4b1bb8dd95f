"""Starts a user's server inside of a job, on the node: what the portal's job script runs.

The certificate and the addresses come in the job's environment. The port is chosen here, and said to the hub
when the server listens there: whoever took it in between would get what its user's browser sends. Where the
hub expects no server, because it was cancelled, the job ends. So it does later, when the hub has forgotten
the server, which nobody could reach or end then.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

_PEM = {"PORTAL_KEY": "KEYFILE", "PORTAL_CERTIFICATE": "CERTFILE", "PORTAL_AUTHORITY": "CLIENT_CA"}
_SECONDS = 30
_SECONDS_BETWEEN = 60
_SECONDS_TO_LOOK = 0.2
_LISTENS = "0A"
_TIMES = 2
"""So often in a row the hub has to say that it does not know a server."""
_UNKNOWN = (401, 403)
_KERNEL = "environment"
IN_IMAGE = "in-image"
_PREFIX = "portal-"
_OF_A_SOCKET = "12345678/kernel-01234567-0123-0123-0123-0123456789ab-ipc-12"
_LONGEST_SOCKET = 107


def place_certificates(place: Path) -> None:
    """Writes them where only their user may read, and takes them out of the environment."""
    for variable, name in _PEM.items():
        path = place / name.lower()
        path.touch(mode=0o600)
        path.write_bytes(base64.b64decode(os.environ.pop(variable)))
        os.environ[f"JUPYTERHUB_SSL_{name}"] = str(path)


def free_port(kept: contextlib.ExitStack) -> int:
    """One that nobody has now; nobody gets it by IPv6, where the server does not listen, while it is kept."""
    while True:
        with socket.socket() as one:
            one.bind(("", 0))
            port: int = one.getsockname()[1]
        try:
            other = kept.enter_context(socket.socket(socket.AF_INET6))
            other.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            other.bind(("::", port))
        except OSError as problem:
            if problem.errno == errno.EADDRINUSE:
                continue
        return port


def is_ours(port: int) -> bool:
    """Whether a process of this user listens on the port, so that nobody else can."""
    wanted = (f"{0:08X}:{port:04X}", _LISTENS, str(os.getuid()))
    lines = Path("/proc/self/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    return any((words[1], words[3], words[7]) == wanted for words in map(str.split, lines))


def comes_up(server: subprocess.Popen[bytes], port: int) -> bool:
    """Waits until the server listens; false when it ends before."""
    while server.poll() is None:
        if is_ours(port):
            return True
        time.sleep(_SECONDS_TO_LOOK)
    return False


def ask_hub(path: str, told: dict[str, int] | None = None) -> None:
    """Asks, or tells, the hub, which has a certificate of its own authority."""
    context = ssl.create_default_context(cafile=os.environ["JUPYTERHUB_SSL_CLIENT_CA"])
    context.load_cert_chain(os.environ["JUPYTERHUB_SSL_CERTFILE"], os.environ["JUPYTERHUB_SSL_KEYFILE"])
    request = urllib.request.Request(  # noqa: S310 - https
        f"{os.environ['JUPYTERHUB_API_URL']}/{path}",
        data=None if told is None else json.dumps(told).encode(),
        headers={
            "Authorization": f"token {os.environ['JUPYTERHUB_API_TOKEN']}",
            "Content-Type": "application/json",
        },
        method="GET" if told is None else "POST",
    )
    opener = urllib.request.build_opener(
        urllib.request.HTTPSHandler(context=context), urllib.request.ProxyHandler({})
    )
    opener.open(request, timeout=_SECONDS).close()


def is_forgotten() -> bool:
    """Whether the hub says that it knows no such server; one that does not answer says nothing."""
    try:
        ask_hub("user")
    except urllib.error.HTTPError as answer:
        return answer.code in _UNKNOWN
    except (OSError, http.client.HTTPException):
        return False
    return False


def wait_for(server: subprocess.Popen[bytes]) -> int:
    """Until the server ends, or a hub that lost its database has no user of it any more."""
    times = 0
    while True:
        try:
            return server.wait(timeout=_SECONDS_BETWEEN)
        except subprocess.TimeoutExpired:
            times = times + 1 if is_forgotten() else 0
        if times >= _TIMES:
            sys.stderr.write("The portal knows nothing of this server any more: it ends.\n")
            server.terminate()


def kernel_of_environment(place: Path) -> None:
    """The Python of a loaded module becomes a kernel, where it has ipykernel."""
    loaded = os.environ.get("LOADEDMODULES", "")
    found = subprocess.run(
        ["python3", "-c", "import ipykernel, sys; print(sys.executable)"],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    if not loaded or found.returncode != 0:
        return
    directory = place / "kernels" / _KERNEL
    directory.mkdir(parents=True)
    argv = [found.stdout.strip(), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    text = {"argv": argv, "display_name": f"Python ({loaded})", "language": "python"}
    (directory / "kernel.json").write_text(json.dumps(text), encoding="utf-8")
    _before("JUPYTER_PATH", place)


def without_debugger(place: Path) -> None:
    """JupyterLab offers none: on a port of the node a kernel's debugger runs whatever anybody sends."""
    directory = place / "labconfig"
    directory.mkdir()
    said = {"disabledExtensions": {"@jupyterlab/debugger-extension": True}}
    (directory / "page_config.json").write_text(json.dumps(said), encoding="utf-8")
    _before("JUPYTER_CONFIG_PATH", place)


def _before(variable: str, place: Path) -> None:
    """Puts a directory before those that a variable has."""
    os.environ[variable] = ":".join(filter(None, [str(place), os.environ.get(variable, "")]))


def without_apps(configuration: str, place: Path) -> str:
    """The settings for a server inside of an image, which has the site's programs only by chance."""
    said = json.loads(Path(configuration).read_text(encoding="utf-8"))
    said.pop("ServerProxy", None)
    path = place / "jupyter_server_config.json"
    path.write_text(json.dumps(said), encoding="utf-8")
    return str(path)


def temporary() -> str:
    """For what is the server's alone: $TMPDIR, where the path of a kernel's socket is not too long in it."""
    found = tempfile.gettempdir()
    return found if len(os.fsencode(f"{found}/{_PREFIX}{_OF_A_SOCKET}")) <= _LONGEST_SOCKET else "/tmp"  # noqa: S108


def main(configuration: str, where: str = "") -> int:
    """Runs the server, and leaves nothing of it in the node's directory for temporary files."""
    os.umask(0o077)
    place = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=temporary()))
    try:
        return serve(place, configuration, is_image=where == IN_IMAGE)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def serve(place: Path, configuration: str, *, is_image: bool = False) -> int:
    """The exit code of the server."""
    place_certificates(place)
    os.environ["JUPYTER_RUNTIME_DIR"] = os.environ["TMPDIR"] = str(place)
    without_debugger(place)
    program = Path(sys.executable).with_name("jupyterhub-singleuser")
    if is_image:
        program = Path(shutil.which(program.name) or program)
        configuration = without_apps(configuration, place)
    else:
        kernel_of_environment(place)
    os.environ["PATH"] = f"{os.environ['PATH']}:{program.parent}"
    with contextlib.ExitStack() as kept:
        return run([str(program), f"--config={configuration}"], free_port(kept))


def run(command: list[str], port: int) -> int:
    """Runs the server on the port, and says that to the hub."""
    os.environ["JUPYTERHUB_SERVICE_URL"] = f"https://0.0.0.0:{port}{os.environ['JUPYTERHUB_SERVICE_PREFIX']}"
    server = subprocess.Popen(command)
    # Slurm tells all of a job's processes; this one waits for the server's end.
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    if comes_up(server, port):
        try:
            ask_hub("portal/port", {"port": port})
        except (OSError, urllib.error.URLError) as problem:
            server.terminate()
            server.wait()
            sys.exit(f"The portal expects no server: {problem}")
    return wait_for(server)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
