"""What deploy runs on a host for the distribution's updates: which wait, their installation, what is stale after.

Sent as text over ssh and run as root, with the standard library of Python 3.9 alone. What takes long runs as a
unit of systemd's, which a connection that ends does not end, and which a second call finds at work.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

UNIT = "deploy-update"
PLACE = Path("/run/deploy-update")
PREFERENCES = Path("/etc/apt/preferences")
PROCESSES = Path("/proc")
KERNELS = Path("/boot")
WANTED_REBOOT = Path("/run/reboot-required")
_SECONDS = 50
_WAITS_FOR_APT = 600
# Inst openssl [3.0.17-1~deb12u2] (3.0.18-1~deb12u1 Debian-Security:12/oldstable-security [amd64])
_INSTALLED = re.compile(r"Inst (?P<name>\S+) (?:\[(?P<old>[^\]]+)\] )?\((?P<new>\S+) (?P<source>[^\[)]*)")
_INSTALL = 'dpkg --force-confdef --force-confold --configure -a && exec "$@"'
_CONFIGURATION = ("-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold")
# Programs and libraries; what else is deleted while it is mapped (memory files, data of jobs) is nobody's update.
_OF_PACKAGES = re.compile(r"/(usr|lib|lib64|bin|sbin|opt)/")
_UNIT_OF_PROCESS = re.compile(r"/([^/]+\.(?:service|scope))(?:/|$)")
# What cannot be restarted under those who use it. Jobs and logins keep what they began with to their end.
_NOT_RESTARTED = re.compile(r"(dbus|dbus-broker|systemd-logind|systemd-journald|systemd-udevd)\.service$")
_OF_USERS = re.compile(r"(session-.*|slurmstepd|user@\d+|slurmd_.*)\.(scope|service)$|user-runtime-dir@.*")


def _run(*command: str) -> tuple[str, bool]:
    """What a command prints, and whether it succeeded; whatever happens is an answer."""
    try:
        done = subprocess.run(
            ("timeout", str(_SECONDS), *command),
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as problem:
        return type(problem).__name__, False
    return done.stdout, done.returncode == 0


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        "LC_ALL": "C",
        "DEBIAN_FRONTEND": "noninteractive",
        "NEEDRESTART_SUSPEND": "1",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    }


def _apt(held: str, *words: str) -> list[str]:
    """apt-get, which leaves packages as they are whose names the pattern ``held`` begins."""
    PLACE.mkdir(mode=0o700, exist_ok=True)
    others = PREFERENCES.read_text(encoding="utf-8") + "\n" if PREFERENCES.exists() else ""
    file = PLACE / "preferences"
    file.write_text(f"{others}Package: /{held}/\nPin: version *\nPin-Priority: -1\n", encoding="utf-8")
    file.chmod(0o644)  # apt reads it as its own user, too
    PLACE.chmod(0o755)
    return [
        *("apt-get", "-o", f"Dir::Etc::Preferences={file}", "-o", f"DPkg::Lock::Timeout={_WAITS_FOR_APT}"),
        *(*_CONFIGURATION, "--yes", "--quiet", "--no-install-recommends", *words),
    ]


def start(action: str, held: str) -> dict[str, Any]:
    """Starts ``refresh`` (the lists of packages) or ``install`` (what waits), unless one is at work; its state."""
    if state()["runs"]:
        return state()
    finish()
    command = _apt(held, "update")
    if action == "install":
        # What an interrupted dpkg left comes first; apt-get would refuse it.
        command = ["sh", "-c", _INSTALL, "sh", *_apt(held, "--with-new-pkgs", "upgrade")]
    said, succeeded = _run(
        *("systemd-run", "--quiet", f"--unit={UNIT}", "--property=RemainAfterExit=yes"),
        *(f"--property=StandardOutput=truncate:{PLACE}/said", "--property=StandardError=inherit"),
        *("--setenv=DEBIAN_FRONTEND=noninteractive", "--setenv=NEEDRESTART_SUSPEND=1", "--setenv=LC_ALL=C"),
        *("--", *command),
    )
    return state() if succeeded else {"runs": False, "trouble": said.strip()}


def state() -> dict[str, Any]:
    """Whether a unit of ours ``runs``; when it does not, its ``trouble``, which is empty where all went well."""
    said = _run("systemctl", "show", UNIT, "--property=ActiveState,SubState,Result,ExecMainStatus")[0]
    shown = dict(line.partition("=")[::2] for line in said.splitlines())
    if shown.get("ActiveState") in {"activating", "deactivating"} or shown.get("SubState") == "running":
        return {"runs": True, "trouble": ""}
    if shown.get("ActiveState") == "inactive" or shown.get("Result") == "success":
        return {"runs": False, "trouble": ""}
    return {"runs": False, "trouble": _trouble() or f"apt-get ended with {shown.get('ExecMainStatus')}"}


def _trouble() -> str:
    file = PLACE / "said"
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.exists() else []
    told = [line for line in lines if re.match(r"E: |Err:|dpkg: error", line)] or lines[-1:]
    return "; ".join(told[:3])


def finish() -> None:
    """Ends a unit that has done its work, so that another can have its name."""
    _run("systemctl", "stop", UNIT)
    _run("systemctl", "reset-failed", UNIT)


def look(held: str) -> dict[str, Any]:
    """``updates`` that wait, those of ``held`` packages apart, and what is ``stale`` by now."""
    broken = _run("dpkg", "--audit")[0].strip()
    said, succeeded = _run(*_apt(held, "--simulate", "--with-new-pkgs", "upgrade"))
    if not succeeded:
        lines = [line for line in said.splitlines() if line.startswith("E: ")]
        return {"trouble": "; ".join(lines[:2]) or "apt-get --simulate upgrade failed"}
    everything = _run(*_apt("^$", "--simulate", "--with-new-pkgs", "upgrade"))[0]
    updates = list(_waiting(said))
    names = {update["name"] for update in updates}
    return {
        "trouble": "",
        "unfinished": bool(broken),
        "updates": updates,
        "held": [update for update in _waiting(everything) if update["name"] not in names],
        "stale": stale(),
    }


def _waiting(said: str) -> Iterator[dict[str, Any]]:
    for match in filter(None, map(_INSTALLED.match, said.splitlines())):
        security = "security" in match["source"].lower()
        yield {"name": match["name"], "old": match["old"] or "", "new": match["new"], "security": security}


def stale() -> dict[str, Any]:
    """Whose programs are not those on disk any more: ``units`` to be restarted, why it must ``reboot``."""
    found = {_unit(process) for process in _with_old_files()}
    reboot = [*_old_kernel(), *_asked_for()]
    reboot += [f"{unit} runs what was replaced" for unit in sorted(found) if _NOT_RESTARTED.match(unit)]
    units = [u for u in sorted(found) if u and not _NOT_RESTARTED.match(u) and not _OF_USERS.match(u)]
    return {"units": units, "reboot": reboot}


def _with_old_files() -> Iterator[str]:
    """Processes, by number, with a program or library mapped that is deleted."""
    for process in filter(str.isdigit, os.listdir(PROCESSES)):
        try:
            with open(PROCESSES / process / "maps", encoding="utf-8", errors="replace") as file:
                if any(_is_old(line) for line in file):
                    yield process
        except OSError:
            continue  # It has ended.


def _is_old(line: str) -> bool:
    path = line.rstrip("\n").partition("/")[1:]
    text = "".join(path)
    return text.endswith(" (deleted)") and bool(_OF_PACKAGES.match(text))


def _unit(process: str) -> str:
    """The innermost unit of a process; ``init`` for the first."""
    if process == "1":
        return "init"
    try:
        text = (PROCESSES / process / "cgroup").read_text(encoding="utf-8")
    except OSError:
        return ""
    found = [unit for line in text.splitlines() for unit in _UNIT_OF_PROCESS.findall(line.split(":", 2)[-1])]
    return next((unit for unit in found if _OF_USERS.match(unit)), found[-1] if found else "")


def _old_kernel() -> Iterator[str]:
    """That a newer kernel is installed than the one that runs."""
    running = os.uname().release
    newest = ""
    for file in KERNELS.glob("vmlinuz-*"):
        version = file.name.partition("-")[2]
        if not newest or _is_newer(version, newest):
            newest = version
    if newest and _is_newer(newest, running):
        yield f"kernel {newest} is installed, {running} runs"


def _is_newer(one: str, other: str) -> bool:
    return _run("dpkg", "--compare-versions", one, "gt", other)[1]


def _asked_for() -> Iterator[str]:
    """What packages ask for: /run/reboot-required and its list, as Debian's and Ubuntu's packages write them."""
    if WANTED_REBOOT.exists():
        listed = WANTED_REBOOT.with_name("reboot-required.pkgs")
        names = sorted(set(listed.read_text(encoding="utf-8").split())) if listed.exists() else []
        yield f"asked for by {', '.join(names) or WANTED_REBOOT}"


def restart(units: Iterable[str]) -> dict[str, str]:
    """Restarts units whose programs are stale; by unit why it does not run then."""
    wanted = list(units)
    if "init" in wanted:
        _run("systemctl", "daemon-reexec")
    services = [unit for unit in wanted if unit.endswith(".service")]
    if services:
        _run("systemctl", "restart", *services)
    return {
        unit: "it does not run after its restart: journalctl -u " + unit
        for unit in services
        if _run("systemctl", "is-failed", "--quiet", unit)[1]
    }


def main(verb: str, arguments: dict[str, Any]) -> None:
    """Does what it is asked for and prints the answer as one line."""
    verbs: dict[str, Callable[..., Any]] = {
        "start": start,
        "state": state,
        "finish": finish,
        "look": look,
        "restart": restart,
    }
    sys.stdout.write("\ndeploy:" + json.dumps(verbs[verb](**arguments)) + "\n")
