"""What deploy runs on a host for the distribution's updates: what waits, its installation, what is stale.

Sent as text over ssh and run as root, with the standard library of Python 3.9 alone. What takes long runs as
a unit of systemd's, which a connection that ends does not end, and which a second call finds at work.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from deploy.run.host_commands import runner, tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

UNIT = "deploy-update-{}"
"""By action: who only looks at what waits has nothing to do with another's installation."""
PLACE = Path("/run/deploy-update")
PREFERENCES = Path("/etc/apt/preferences")
PROCESSES = Path("/proc")
KERNELS = Path("/boot")
WANTED_REBOOT = Path("/run/reboot-required")
_WAITS_FOR_APT = 600
# Inst openssl [3.0.17-1~deb12u2] (3.0.18-1~deb12u1 Debian-Security:12/oldstable-security [amd64])
_TO_INSTALL = re.compile(r"Inst (?P<name>\S+) (?:\[(?P<old>[^\]]+)\] )?\((?P<new>\S+) (?P<source>[^\[)]*)")
# A mirror that is away is no more than a warning to apt, which goes on with old lists, unless it is told
# otherwise (from 2.1.16 on). One that is updated at this moment is whole a little later. It takes its time to
# read lists, so what waits is asked behind their arrival.
_REFRESH = (
    '{ "$@" update --error-on=any || { sleep 10; "$@" update --error-on=any; }; } && '
    '"$@" --simulate --with-new-pkgs upgrade > waiting && '
    f'"$@" -o Dir::Etc::Preferences={PREFERENCES} --simulate --with-new-pkgs upgrade > of_all'
)
# What an interrupted dpkg left comes first; apt-get would refuse it.
_INSTALL = (
    "rm -f waiting of_all; dpkg --force-confdef --force-confold --configure -a && "
    '"$@" --with-new-pkgs upgrade'
)
_CONFIGURATION = ("-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold")
# Programs and libraries; what else is deleted while it is mapped (memory, data of jobs) is nobody's update.
_OF_PACKAGES = re.compile(r"/(usr|lib|lib64|bin|sbin|opt)/")
_FLAVOUR = re.compile(r"-[a-z].*")  # 6.1.0-9-cloud-amd64 is none newer than 6.1.0-9-amd64.
_UNIT_OF_PROCESS = re.compile(r"/([^/]+\.(?:service|scope))(?:/|$)")
# What cannot be restarted under those who use it: sessions, ways to the host, containers, virtual machines.
# Jobs and logins keep what they began with to their end.
_NOT_RESTARTED = re.compile(
    r"(dbus|dbus-broker|systemd-logind|systemd-journald|systemd-udevd"
    r"|networking|ifup@.*|dhcpcd.*|NetworkManager|wpa_supplicant.*|netplan-wpa.*|openvpn.*|.*swan.*|wg-quick@.*"
    r"|frr|bird.*|keepalived|docker|containerd|libvirt.*|virtqemud|systemd-nspawn@.*)\.service$"
)
# It begins anew by itself, or has done its work.
_LEFT_ALONE = re.compile(
    r"((serial-|container-)?getty@.*|console-getty|rc-local|apt-daily.*|unattended-upgrades)\.service$"
)
_OF_USERS = re.compile(
    r"(session-.*|(.+_)?slurmstepd|user@\d+|slurmd_.*)\.(scope|service)$|user-runtime-dir@.*"
)
_run = runner(50)


def start(action: str, held: str) -> dict[str, Any]:
    """Starts ``refresh`` (the lists of packages) or ``install``, unless one is at work; gives its state.

    Packages whose names match ``held`` (a regular expression of POSIX's) stay as they are.
    """
    if (now := state(action))["runs"]:
        return now
    _end(action)
    PLACE.mkdir(exist_ok=True)
    others = PREFERENCES.read_text(encoding="utf-8") + "\n" if PREFERENCES.exists() else ""
    file = PLACE / "preferences"
    file.write_text(f"{others}Package: /{held}/\nPin: version *\nPin-Priority: -1\n", encoding="utf-8")
    apt = (
        *("apt-get", "-o", f"Dir::Etc::Preferences={file}", "-o", f"DPkg::Lock::Timeout={_WAITS_FOR_APT}"),
        *(*_CONFIGURATION, "--yes", "--quiet", "--no-install-recommends"),
    )
    said, succeeded = _run(
        *("systemd-run", "--quiet", f"--unit={UNIT.format(action)}", "--property=RemainAfterExit=yes"),
        *(f"--property=StandardOutput=truncate:{_said(action)}", f"--property=WorkingDirectory={PLACE}"),
        *("--setenv=DEBIAN_FRONTEND=noninteractive", "--setenv=NEEDRESTART_SUSPEND=1", "--setenv=LC_ALL=C"),
        *("--", "sh", "-c", _REFRESH if action == "refresh" else _INSTALL, "sh", *apt),
    )
    return state(action) if succeeded else {"runs": False, "trouble": said.strip()}


def state(action: str) -> dict[str, Any]:
    """Whether our unit ``runs``; when it does not, its ``trouble``, which is empty where all went well.

    The unit of an installation stays until `finish`: where there is none, a boot has taken it.
    """
    properties = "--property=ActiveState,SubState,Result,ExecMainStatus"
    said = _run("systemctl", "show", UNIT.format(action), properties)[0]
    shown = dict(line.partition("=")[::2] for line in said.splitlines())
    if shown.get("ActiveState") in {"activating", "deactivating"} or shown.get("SubState") == "running":
        return {"runs": True, "trouble": ""}
    if shown.get("ActiveState") == "inactive":
        trouble = "its installation was cut off: the unit is gone, as after a boot"
        return {"runs": False, "trouble": trouble if action == "install" else ""}
    if shown.get("Result") == "success":
        return {"runs": False, "trouble": ""}
    why = _trouble(action) or f"apt-get ended with {shown.get('ExecMainStatus')}"
    return {"runs": False, "trouble": why}


def _said(action: str) -> Path:
    return PLACE / f"said-{action}"


def _trouble(action: str) -> str:
    file = _said(action)
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.exists() else []
    told = [line for line in lines if re.match(r"E: |Err:|dpkg: error", line)] or lines[-1:]
    return "; ".join([*dict.fromkeys(told)][:3])


def finish(action: str) -> None:
    """Takes a unit away that has done its work; one that another run has started since goes on."""
    if not state(action)["runs"]:
        _end(action)


def _end(action: str) -> None:
    _run("systemctl", "stop", UNIT.format(action))
    _run("systemctl", "reset-failed", UNIT.format(action))


def look() -> dict[str, Any]:
    """``updates`` that waited when the lists were fetched, if nothing was installed since; what is stale now.

    ``held`` are updates of packages that stay as they are. ``unfinished``: an installation was cut off.
    """
    updates, everything = _waiting("waiting"), _waiting("of_all")
    return {
        "unfinished": bool(_run("dpkg", "--audit")[0].strip()),
        "updates": updates,
        "held": [update for update in everything if update not in updates],
        "stale": stale(),
    }


def _waiting(name: str) -> list[dict[str, Any]]:
    """What a simulation of apt-get would install."""
    file = PLACE / name
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.exists() else []
    return [
        {
            "name": match["name"],
            "old": match["old"] or "",
            "new": match["new"],
            "security": "security" in match["source"].lower(),
        }
        for match in filter(None, map(_TO_INSTALL.match, lines))
    ]


def stale() -> dict[str, Any]:
    """Whose programs are not those on disk any more: ``units`` to be restarted, why it must ``reboot``."""
    found = {_unit(process) for process in _with_old_files()}
    reboot = [*_old_kernel(), *_asked_for()]
    reboot += [f"{unit} runs what was replaced" for unit in sorted(found) if _NOT_RESTARTED.match(unit)]
    kept = (_NOT_RESTARTED, _OF_USERS, _LEFT_ALONE)
    units = [unit for unit in sorted(found) if unit and not any(kind.match(unit) for kind in kept)]
    once = _run_once(units)
    return {"units": [unit for unit in units if unit not in once], "reboot": reboot}


def _run_once(units: list[str]) -> set[str]:
    """Those that do their work and end, as a backup: a restart would cut it off, or do it again."""
    said = _run("systemctl", "show", "--property=Id,Type", "--", *units)[0] if units else ""
    blocks = (dict(line.partition("=")[::2] for line in block.splitlines()) for block in said.split("\n\n"))
    return {block["Id"] for block in blocks if block.get("Type") == "oneshot" and "Id" in block}


def _with_old_files() -> Iterator[str]:
    """Processes, by number, with a program or library mapped that is deleted."""
    for process in PROCESSES.iterdir():
        try:
            with (process / "maps").open(encoding="utf-8", errors="replace") as file:
                if process.name.isdigit() and any(map(_is_old, file)):
                    yield process.name
        except OSError:
            continue  # It has ended, or is none.


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
    groups = [line.split(":", 2)[-1] for line in text.splitlines()]
    found = [unit for group in groups for unit in _UNIT_OF_PROCESS.findall(group)]
    return next((unit for unit in found if _OF_USERS.match(unit)), found[-1] if found else "")


def _old_kernel() -> Iterator[str]:
    """That a newer kernel is installed than the one that runs, of those that are built like it."""
    running = os.uname().release
    newest = ""
    for file in KERNELS.glob("vmlinuz-*"):
        version = file.name.partition("-")[2]
        if _FLAVOUR.findall(version) != _FLAVOUR.findall(running):
            continue
        if not newest or _is_newer(version, newest):
            newest = version
    if newest and _is_newer(newest, running):
        yield f"kernel {newest} is installed, {running} runs"


def _is_newer(one: str, other: str) -> bool:
    return _run("dpkg", "--compare-versions", one, "gt", other)[1]


def _asked_for() -> Iterator[str]:
    """What packages ask for: /run/reboot-required and its list, as packages write them."""
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
    tell(verbs[verb](**arguments))
