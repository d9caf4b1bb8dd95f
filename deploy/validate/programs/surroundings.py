"""What users of a host meet there: accounts, the login shell, directories, its name, its clock's zone.

Asked as root; changes nothing. ``look`` is called with a dictionary, and returns one.
"""

from __future__ import annotations

import grp
import os
import pwd
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from typing import Any

_ORDINARY = range(1000, 60000)  # login.defs(5): UID_MIN, UID_MAX of Debian
_MOST = 500
_NUMBER = 2  # its place on a line of passwd(5) and group(5)
_SHARED_DIRECTORIES = ("/tmp", "/var/tmp", "/dev/shm")
_NO_LOGINS = ("/etc/nologin", "/run/nologin")  # pam_nologin(8)
_SHELL_SECONDS = 60
_MOST_BYTES = 1 << 20
_MARK = "deploy-login-shell:"
_NOBODYS = "192.0.2.1"  # for documentation: RFC 5737


def look(arguments: dict[str, Any]) -> dict[str, Any]:
    """Everything once."""
    return {
        "name": os.uname().nodename,
        "addresses_of": addresses_of(arguments["addresses"]),
        "users": users([*arguments["users"], *ordinary("/etc/passwd")]),
        "groups": groups([*arguments["groups"], *ordinary("/etc/group")]),
        "directories": {path: directory(path) for path in _SHARED_DIRECTORIES},
        "closed": closed(),
        "zone": time.strftime("%z"),
        "login_shell": login_shell(arguments["user"]),
    }


def ordinary(path: str) -> list[str]:
    """The users or groups of this host's own files that are no part of the system."""
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line.split(":") for line in file]
    named = [
        words[0]
        for words in lines
        if len(words) > _NUMBER and words[_NUMBER].isdigit() and int(words[_NUMBER]) in _ORDINARY
    ]
    return sorted(named)[:_MOST]


def users(names: list[str]) -> dict[str, dict[str, Any] | None]:
    """What each is here; null for one that is not known."""
    found: dict[str, dict[str, Any] | None] = {}
    for name in names:
        try:
            told = pwd.getpwnam(name)
        except KeyError:
            found[name] = None
        else:
            found[name] = {
                "uid": told.pw_uid,
                "gid": told.pw_gid,
                "shell": told.pw_shell,
                "has_shell": os.path.exists(told.pw_shell or "/bin/sh"),
            }
    return found


def groups(names: list[str]) -> dict[str, int | None]:
    """The number of each; null for one that is not known."""
    found: dict[str, int | None] = {}
    for name in names:
        try:
            found[name] = grp.getgrnam(name).gr_gid
        except KeyError:
            found[name] = None
    return found


def directory(path: str) -> dict[str, Any] | None:
    """Mode and owner, and the file system that is mounted there; null when there is no such directory."""
    if not os.path.isdir(path):
        return None
    told = os.stat(path)
    return {
        "mode": told.st_mode & 0o7777,
        "uid": told.st_uid,
        "mounted": mounted(path),
        "is_read_only": bool(os.statvfs(path).f_flag & os.ST_RDONLY),
    }


def mounted(path: str) -> str:
    """The type of the file system that is mounted on a directory; empty when none is."""
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
        table = {line.split()[1]: line.split()[2] for line in file}
    return table.get(path, "")


def closed() -> str:
    """The file that closes the host to users; empty when there is none."""
    return next((path for path in _NO_LOGINS if os.path.exists(path)), "")


def addresses_of(known: dict[str, str]) -> list[str]:
    """The hosts whose addresses are this one's."""
    if is_own(_NOBODYS):
        return []  # net.ipv4.ip_nonlocal_bind: every address can be taken, so none says anything.
    return [name for name, address in known.items() if is_own(address)]


def is_own(address: str) -> bool:
    """Whether this host has an address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as one:
        one.bind((address, 0))
        return True
    return False


def login_shell(user: str | None) -> dict[str, Any] | None:
    """What came of a command in a user's login shell; null where there is no such user.

    ``why`` is empty when the command ran; ``umask`` is that of the shell.
    """
    try:
        told = pwd.getpwnam(user) if user else None
    except KeyError:
        told = None
    if told is None:
        return None
    shell = told.pw_shell or "/bin/sh"
    environment = {"HOME": told.pw_dir, "USER": told.pw_name, "LOGNAME": told.pw_name, "SHELL": shell}
    # As the user: root may not look into a home on a file server that takes it for nobody.
    at_home = ("/bin/sh", "-c", 'cd || cd /; exec "$0" -l -c "$1"', shell, f"echo {_MARK}$(umask)")
    # A file, not a pipe: what a profile leaves in the background would keep that open.
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                at_home,
                user=told.pw_uid,
                group=told.pw_gid,
                extra_groups=os.getgrouplist(told.pw_name, told.pw_gid),
                env={**environment, "PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as problem:
            return {"why": f"{shell}: {problem.strerror}", "umask": ""}
        try:
            code = process.wait(_SHELL_SECONDS)
        except subprocess.TimeoutExpired:
            return {"why": f"{shell} -l does not come to its command within {_SHELL_SECONDS} s", "umask": ""}
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        said = output.read(_MOST_BYTES).decode("utf-8", "replace")
    lines = [line for line in said.splitlines() if line.strip()]
    if code == 0 and lines and _MARK in lines[-1]:
        return {"why": "", "umask": lines[-1].partition(_MARK)[2]}
    last = f": {lines[-1].strip()[:200]}" if lines else ""
    return {"why": f"{shell} -l ends with exit code {code} before its command{last}", "umask": ""}
