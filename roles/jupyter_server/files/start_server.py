"""Starts a user's server inside of a job, on the node: what the portal's job script runs.

The certificate and the addresses come in the job's environment. The port is chosen here and said to the hub;
where that expects no server, because it was cancelled, the job ends. So it does later, when the hub has
forgotten the server, which nobody could reach or end then.
"""

from __future__ import annotations

import base64
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
import urllib.error
import urllib.request
from pathlib import Path

_PEM = {"PORTAL_KEY": "KEYFILE", "PORTAL_CERTIFICATE": "CERTFILE", "PORTAL_AUTHORITY": "CLIENT_CA"}
_SECONDS = 30
_SECONDS_BETWEEN = 60
_TIMES = 2
"""So often in a row the hub has to say that it does not know a server."""
_UNKNOWN = (401, 403)
_KERNEL = "environment"
IN_IMAGE = "in-image"


def place_certificates(place: Path) -> None:
    """Writes them where only their user may read, and takes them out of the environment."""
    for variable, name in _PEM.items():
        path = place / name.lower()
        path.touch(mode=0o600)
        path.write_bytes(base64.b64decode(os.environ.pop(variable)))
        os.environ[f"JUPYTERHUB_SSL_{name}"] = str(path)


def free_port() -> int:
    """One that nobody has now."""
    with socket.socket() as one:
        one.bind(("", 0))
        port: int = one.getsockname()[1]
        return port


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
    os.environ["JUPYTER_PATH"] = ":".join(filter(None, [str(place), os.environ.get("JUPYTER_PATH", "")]))


def without_apps(configuration: str, place: Path) -> str:
    """The settings for a server inside of an image, which has the site's programs only by chance."""
    said = json.loads(Path(configuration).read_text(encoding="utf-8"))
    said.pop("ServerProxy", None)
    path = place / "jupyter_server_config.json"
    path.write_text(json.dumps(said), encoding="utf-8")
    return str(path)


def main(configuration: str, where: str = "") -> int:
    """Runs the server, and leaves nothing of it in the node's directory for temporary files."""
    os.umask(0o077)
    place = Path(tempfile.mkdtemp(prefix="portal-"))
    try:
        return serve(place, configuration, is_image=where == IN_IMAGE)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def serve(place: Path, configuration: str, *, is_image: bool = False) -> int:
    """The exit code of the server."""
    place_certificates(place)
    os.environ["JUPYTER_RUNTIME_DIR"] = os.environ["TMPDIR"] = str(place)
    program = Path(sys.executable).with_name("jupyterhub-singleuser")
    if is_image:
        program = Path(shutil.which(program.name) or program)
        configuration = without_apps(configuration, place)
    else:
        kernel_of_environment(place)
    port = free_port()
    try:
        ask_hub("portal/port", {"port": port})
    except (OSError, urllib.error.URLError) as problem:
        sys.exit(f"The portal expects no server: {problem}")
    os.environ["JUPYTERHUB_SERVICE_URL"] = f"https://0.0.0.0:{port}{os.environ['JUPYTERHUB_SERVICE_PREFIX']}"
    os.environ["PATH"] = f"{os.environ['PATH']}:{program.parent}"
    server = subprocess.Popen([program, f"--config={configuration}"])
    # Slurm tells all of a job's processes; this one waits for the server's end.
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    return wait_for(server)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
