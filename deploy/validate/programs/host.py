"""What every host is asked, as root: its files, names, ways to its peers, mounts and space; Slurm's words.

Changes nothing. ``look``, ``unseal`` and ``leftovers`` are called, each with a dictionary, and return one.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import os
import pwd
import re
import socket
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

# Where Slurm looks for plugins that are named without a directory, unless slurm.conf says where.
_PLUGIN_DIRECTORIES = (
    *(
        "/usr/lib/*/slurm-wlm",
        "/usr/lib/*/slurm",
        "/usr/lib64/slurm",
        "/usr/lib/slurm",
        "/usr/local/lib/slurm",
    ),
)
# Where slurmd and sackd keep what they fetched, where clients do, where the controller has its own.
_CONF_DIRECTORIES = ("/run/slurm/conf", "/run/slurm-conf", "/etc/slurm")
_CONF_FILES = (
    *("slurm.conf", "cgroup.conf", "gres.conf", "plugstack.conf", "job_container.conf"),
    *("topology.conf", "acct_gather.conf", "cli_filter.lua"),
)
"""What deploy writes on controllers, and Slurm brings to the others."""
_ENVIRONMENT_FILE = "/etc/environment"
_SECONDS = 10
_CONNECTION_SECONDS = 3
_SECONDS_TO_END = 0.5
# stat(1): the size of a block, blocks that a user may take and all, files that are free and all.
_ASK_SPACE = ("stat", "--file-system", "--format=%S %a %b %d %c", "--")
_PACKET = 65536
_TCP_HEADER = 20
_SYN, _RST = 2, 4
_ENVIRONMENT = {
    **os.environ,
    "LC_ALL": "C",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
}

_NOBODY = 65534
_BY_SLURM = "auth/slurm"
# Where daemons of Slurm sign and judge (sackd(8)), in the order in which its commands look.
_KIOSKS = ("/run/slurm/sack.socket", "/run/slurmctld/sack.socket", "/run/slurmdbd/sack.socket")
_VERIFY = 64002
# Run as whom it is signed for: the daemon asks the kernel who is at the other end.
_SIGN = """
import socket, struct, sys
for path in sys.argv[1:]:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as kiosk:
            kiosk.settimeout(5)
            kiosk.connect(path)
            kiosk.sendall(struct.pack(">HIIII", 0, 16, 64001, 0xFFFFFFFF, 0))
            answer = b"".join(iter(lambda: kiosk.recv(65536), b""))
    except OSError:
        continue
    print(answer[4:].rstrip(b"\\0").decode("ascii", "replace"))
    break
"""

SLURM_COMMANDS = {
    "ping": ("scontrol", "ping"),
    "nodes": ("scontrol", "--oneliner", "--all", "show", "nodes"),
    "partitions": ("scontrol", "--oneliner", "--all", "show", "partitions"),
    "qos": ("sacctmgr", "--noheader", "--parsable2", "show", "qos", "format=name"),
    "associations": (
        *("sacctmgr", "--noheader", "--parsable2", "show", "associations"),
        "format=cluster,account,user,partition,qos",
    ),
}


def ask(argv: tuple[str, ...]) -> dict[str, Any]:
    """What a command says: its exit code (null if there was none), output, and why it failed."""
    try:
        done = subprocess.run(
            argv,
            env=_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"code": None, "out": "", "why": f"no answer within {_SECONDS} s"}
    except OSError as problem:
        return {"code": None, "out": "", "why": f"{argv[0]}: {problem.strerror}"}
    said = done.stderr.strip() or done.stdout.strip()
    lines = [line for line in said.splitlines() if re.search(r"\w", line)]
    return {
        "code": done.returncode,
        "out": done.stdout,
        "why": lines[-1] if done.returncode and lines else "",
    }


def configuration() -> dict[str, Any]:
    """Slurm's files as this host has them: the directory, a hash per file, the lines of plugstack.conf.

    A host without any, whose commands fetch them each time, names the ``server`` that they ask.
    """
    place = next((path for path in _CONF_DIRECTORIES if os.path.exists(f"{path}/slurm.conf")), None)
    if place is None:
        return {"directory": None, "hashes": {}, "plugins": [], "server": server()}
    hashes, plugins, directories = {}, [], list(_PLUGIN_DIRECTORIES)
    for name in _CONF_FILES:
        try:
            with open(f"{place}/{name}", "rb") as file:
                text = file.read()
        except OSError:
            continue
        hashes[name] = hashlib.sha256(text).hexdigest()
        if name == "slurm.conf":
            directories = plugin_directories(text.decode("utf-8", "replace")) or directories
        if name == "plugstack.conf":
            plugins = plugins_of(text.decode("utf-8", "replace"))
    return {
        "directory": place,
        "server": "",
        "hashes": hashes,
        "plugins": [{"path": path, "exists": is_there(path, directories)} for path in plugins],
    }


def server() -> str:
    """The controllers that Slurm's commands are told to ask; empty when they are told about none."""
    try:
        with open(_ENVIRONMENT_FILE, encoding="utf-8", errors="replace") as file:
            found = re.findall(r"^SLURM_CONF_SERVER=(.*)$", file.read(), re.MULTILINE)
    except OSError:
        return ""
    return str(found[-1]).strip().strip("\"'") if found else ""


def plugins_of(text: str) -> list[str]:
    """The files that plugstack.conf loads, as it names them."""
    words = (line.split("#")[0].split() for line in text.splitlines())
    return [line[1] for line in words if len(line) > 1 and line[0] in ("required", "optional")]


def plugin_directories(text: str) -> list[str]:
    """Where slurm.conf says that plugins are; empty when it does not."""
    found = re.findall(r"^\s*PluginDir\s*=\s*(\S+)", text, re.MULTILINE | re.IGNORECASE)
    return str(found[-1]).split(":") if found else []


def is_there(plugin: str, directories: list[str]) -> bool:
    """Whether a plugin's file exists, by its path or in one of the directories, which may be patterns."""
    return any(glob.glob(os.path.join(place, plugin)) for place in directories)


def addresses(names: list[str]) -> dict[str, list[str]]:
    """What names mean here; an empty list for a name that is not known."""
    found: dict[str, list[str]] = {}
    for name in names:
        try:
            told = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except OSError:
            told = []
        found[name] = sorted({str(entry[4][0]) for entry in told})
    return found


def half_connected(name: str, port: int, seconds: float = _CONNECTION_SECONDS) -> str:
    """Why a port takes no connection, empty when it does. Raises OSError.

    The connection is asked for and, once it is granted, not taken (RFC 9293, 3.5): the daemon never hears of
    it. slurmd logs errors of each one that is opened and closed without a word.
    """
    family, _, _, _, place = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)[0]
    address = str(place[0])
    with socket.socket(family, socket.SOCK_DGRAM) as way:
        way.connect(place)
        own = way.getsockname()[0]
    # Held, so that nobody else uses the port; the kernel knows of no connection there, and refuses the grant.
    with socket.socket(family, socket.SOCK_STREAM) as held, _raw(family) as raw:
        held.bind((own, 0))
        ours, deadline = held.getsockname()[1], time.monotonic() + seconds
        raw.bind((own, 0))
        while (left := deadline - time.monotonic()) > 0:
            raw.sendto(asking(family, own, address, ours, port), (address, 0))
            until = time.monotonic() + min(left, 1)
            while (wait := until - time.monotonic()) > 0:
                raw.settimeout(wait)
                try:
                    packet, sender = raw.recvfrom(_PACKET)
                except socket.timeout:  # noqa: UP041 - another class before Python 3.10
                    break
                answer = answered(
                    packet[(packet[0] & 15) * 4 if family == socket.AF_INET else 0 :], port, ours
                )
                if sender[0] == address and answer is not None:
                    return answer
    return os.strerror(errno.ETIMEDOUT)


def _raw(family: int) -> socket.socket:
    return socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_TCP)


def asking(family: int, own: str, address: str, ours: int, port: int) -> bytes:
    """The TCP segment that asks for a connection, with its checksum over addresses and itself."""
    ends = socket.inet_pton(family, own) + socket.inet_pton(family, address)
    start = int.from_bytes(os.urandom(4), "big")
    first, last = struct.pack("!HHIIBBH", ours, port, start, 0, 5 << 4, _SYN, 65535), struct.pack("!H", 0)
    counted = ends + struct.pack("!HH", socket.IPPROTO_TCP, len(first) + 4) + first + last + last
    total = sum(struct.unpack(f"!{len(counted) // 2}H", counted))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return first + struct.pack("!H", ~total & 0xFFFF) + last


def answered(segment: bytes, port: int, ours: int) -> str | None:
    """What a TCP segment says to our asking: empty, or why not; None where it is about something else."""
    if len(segment) < _TCP_HEADER or struct.unpack("!HH", segment[:4]) != (port, ours):
        return None
    if segment[13] & _RST:
        return os.strerror(errno.ECONNREFUSED)
    return "" if segment[13] & _SYN else None


def refusals(peers: list[list[Any]]) -> dict[str, str]:
    """By ``name:port``, why no connection came about; a peer that accepts one is not in it."""

    def refusal(peer: list[Any]) -> str:
        try:
            try:
                return half_connected(peer[1], peer[2])
            except PermissionError:  # in a container that may not
                socket.create_connection((peer[1], peer[2]), _CONNECTION_SECONDS).close()
                return ""
        except OSError as problem:
            return problem.strerror or str(problem)

    with ThreadPoolExecutor(max_workers=16) as pool:
        found = list(pool.map(refusal, peers))
    return {f"{peer[0]}:{peer[2]}": why for peer, why in zip(peers, found) if why}  # noqa: B905 - Python 3.9


def mounted(paths: list[str]) -> dict[str, str]:
    """By directory, the type of the file system that is mounted there; empty when none is."""
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
        table = {re.sub(r"\\040", " ", line.split()[1]): line.split()[2] for line in file}
    return {path: table.get(path.rstrip("/") or "/", "") for path in paths}


def file_systems(paths: list[str]) -> dict[str, list[int] | None]:
    """By directory, bytes and files: those that an ordinary user may still take, and all.

    None where its file system does not answer; who asks that one cannot be ended, so that others ask.
    """
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    asking = {
        path: subprocess.Popen([*_ASK_SPACE, path], stdin=nothing, stdout=pipe, stderr=nothing)
        for path in dict.fromkeys(paths)
    }
    until = time.monotonic() + _SECONDS
    found: dict[str, list[int] | None] = {}
    for path, process in asking.items():
        try:
            said, _ = process.communicate(timeout=max(_SECONDS_TO_END, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            found[path] = None
            process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=_SECONDS_TO_END)
            continue
        if process.returncode == 0:
            size, free, whole, *files = map(int, said.split())
            found[path] = [free * size, whole * size, *files]
    return found


def processes_of(user: str | None) -> list[str]:
    """The command lines of the processes that run as a user."""
    try:
        number = pwd.getpwnam(user).pw_uid if user else None
    except KeyError:
        return []
    found = []
    for entry in os.listdir("/proc") if number is not None else []:
        try:
            if entry.isdigit() and os.stat(f"/proc/{entry}").st_uid == number:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    found.append(file.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()[:120])
        except OSError:
            continue
    return found


def leftovers(arguments: dict[str, Any]) -> dict[str, Any]:
    """What jobs of a validation left on a host: files with its marker, and processes of its user."""
    user, marker = arguments["user"], arguments["marker"]
    files = [
        f"{place}/{name}"
        for place in ("/tmp", "/var/tmp", "/dev/shm")
        for name in os.listdir(place)
        if marker and marker in name
    ]
    return {"leftovers": files + [f"process: {line}" for line in processes_of(user)]}


def look(arguments: dict[str, Any]) -> dict[str, Any]:
    """Everything once."""
    directories, mounts = arguments["directories"], arguments["mounts"]
    table, answers = mounted(mounts), file_systems([*directories, *mounts])
    return {
        "configuration": configuration(),
        "credential": credential(arguments["auth_type"]) if arguments["auth_type"] else None,
        "addresses": addresses(arguments["names"]),
        "refusals": refusals(arguments["peers"]),
        "mounted": table,
        # Of those one may not say anything for ever, or that its server knows nothing of it any more.
        "silent": [path for path in mounts if table[path] and answers.get(path) is None],
        "space": {path: answers[path] for path in directories if path in answers},
        "slurm": slurm() if arguments["asks_slurm"] else None,
    }


def slurm() -> dict[str, Any]:
    """What Slurm's commands say, all at once: one that waits for a daemon does not keep the others."""
    with ThreadPoolExecutor(max_workers=len(SLURM_COMMANDS)) as pool:
        return dict(zip(SLURM_COMMANDS, pool.map(ask, SLURM_COMMANDS.values())))  # noqa: B905 - Python 3.9


def credential(auth_type: str) -> str:
    """A credential that proves nothing but who made it: nobody."""
    is_by_slurm = auth_type == _BY_SLURM
    command = [sys.executable, "-I", "-c", _SIGN, *_KIOSKS] if is_by_slurm else ["munge", "--no-input"]
    try:
        done = subprocess.run(
            command,
            user=_NOBODY,
            env=_ENVIRONMENT,
            capture_output=True,
            encoding="ascii",
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def unseal(arguments: dict[str, Any]) -> dict[str, Any]:
    """By host, why its credential cannot be decoded here; empty when it can."""
    credentials = arguments["credentials"]
    reason = _judged_by_slurm if arguments["auth_type"] == _BY_SLURM else _judged_by_munge
    with ThreadPoolExecutor(max_workers=4) as pool:
        reasons = list(pool.map(reason, credentials.values()))
    return {"undecoded": {host: why for host, why in zip(credentials, reasons) if why}}  # noqa: B905 - Python 3.9


def _judged_by_munge(credential: str) -> str:
    try:
        done = subprocess.run(
            ("unmunge", "--no-output"),
            input=credential,
            env=_ENVIRONMENT,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return str(problem)
    return (done.stderr.strip() or f"exit code {done.returncode}") if done.returncode else ""


def _judged_by_slurm(credential: str) -> str:
    text = credential.encode() + b"\0"
    request = struct.pack(">HIII", 0, 12 + len(text), _VERIFY, len(text)) + text
    for path in _KIOSKS:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as kiosk:
                kiosk.settimeout(_SECONDS)
                kiosk.connect(path)
                kiosk.sendall(request)
                answer = kiosk.recv(4)
        except OSError:
            continue
        return "" if answer == bytes(4) else f"the daemon of {path} refuses it"
    return "no daemon of Slurm judges credentials there"
