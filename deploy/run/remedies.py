"""What deploy runs on a node that is to be repaired: one remedy at a time, and what a vendor wants to know.

Sent as text over ssh and run as root, with the standard library of Python 3.9 alone.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from deploy.run.host_commands import last_line, runner, tell
from deploy.run.job_steps import steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

SETTINGS = Path("/etc/node_health.json")
MOUNTS = Path("/proc/self/mounts")
DMI = Path("/sys/class/dmi/id")
_MOST_LETTERS = 20_000
"""Of what one command said, from its end: a dossier is read by people."""
_OF_SERVERS = re.compile(r"(nfs4?|cifs|lustre|beegfs(_nodev)?|ceph|fuse\..*|gpfs|9p)$")
_SERIALS = ("sys_vendor", "product_name", "product_serial", "board_serial", "bios_version")
_QUESTIONS = {
    "disks": "lsblk --nodeps --output NAME,MODEL,SERIAL,SIZE,RO",
    "GPUs": "nvidia-smi --query-gpu=index,name,serial,uuid,pci.bus_id,vbios_version --format=csv",
    "failed units": "systemctl --failed --no-legend --plain",
    "file systems": "df --local --human-readable",
    "addresses": "ip -brief address",
    "kernel": "journalctl --boot --dmesg --no-pager --lines=200",
    "warnings of two hours": "journalctl --since=-2h --priority=warning --no-pager --lines=200",
    "slurmd": "tail --lines=100 /var/log/slurm/slurmd.log",
}
GPU_HOLDERS = (
    *("gpu_exporter.service", "nvidia-dcgm-exporter.service"),
    *("nvidia-dcgm.service", "dcgm.service", "nvsm.service", "nvidia-persistenced.service"),
)
"""What keeps GPUs open beside jobs, in the order in which it is stopped; deploy_mig.py has it, too."""
MODES = "deploy-gpu-modes.service"
INSTANCE_READERS = (
    *(MODES, "deploy-nvidia-cdi.service", "nvidia-dcgm.service", "gpu_exporter.service", "slurmd.service"),
)
"""What looks at GPUs when it starts; in roles/mig/vars/main.yml, too."""
_run = runner(50)
_run_long = runner(200)


def _are_active(names: Iterable[str]) -> list[str]:
    return [name for name in names if _run("systemctl", "is-active", "--quiet", name)[1]]


def _all_must(verb: str, names: Iterable[str]) -> str:
    """Has systemd do that with all of them; nothing, or why the first failed that did."""
    return next(filter(None, [_must("systemctl", verb, name) for name in names]), "")


def _must(*command: str, run: Callable[..., tuple[str, bool]] | None = None) -> str:
    """Nothing, or why the command failed."""
    said, succeeded = (run or _run)(*command)
    return "" if succeeded else last_line(said) or f"{command[0]} failed"


def restart(subject: str) -> str:
    """Starts a service anew, however often it has failed."""
    _run("systemctl", "reset-failed", subject)
    return _must("systemctl", "restart", subject)


def mount(subject: str) -> str:
    """Mounts a file system of /etc/fstab that is missing; what is mounted there stays as it is."""
    kind = _mounted(subject)
    return f"not mounted: {kind} is mounted there" if kind else _must("mount", subject)


def remount(subject: str) -> str:
    """Mounts a file system anew that does not answer, or may be written again."""
    kind = _mounted(subject)
    if kind and not _OF_SERVERS.match(kind):
        return f"not remounted: it is local ({kind}), and is checked when the machine boots"
    # Lazily: whoever hangs in it would keep it.
    return (_must("umount", "--force", "--lazy", subject) if kind else "") or _must("mount", subject)


def _mounted(path: str) -> str:
    """The type of the file system that is mounted there; empty for none."""
    table = [line.split() for line in MOUNTS.read_text(encoding="utf-8").splitlines()]
    kinds = [fields[2] for fields in table if fields[1] == path]
    return kinds[-1] if kinds and kinds[-1] != "autofs" else ""


def clean(subject: str) -> str:  # noqa: ARG001 - every remedy has one
    """Removes what may go: old temporary files, as their settings say, and packages that were downloaded."""
    return _must("systemd-tmpfiles", "--clean") or _must("apt-get", "--quiet", "clean")


def set_clock(subject: str) -> str:  # noqa: ARG001
    """Steps the clock, which chrony does at its start."""
    return restart("chrony")


def reset_gpu(subject: str) -> str:
    """Resets a GPU, or all where it is not said which; then brings back what it was told since the boot.

    One that a daemon keeps open is not reset.
    """
    held = _are_active(GPU_HOLDERS)
    try:
        why = _all_must("stop", held)
        which = ("--id", subject) if subject else ()
        why = why or _must("nvidia-smi", "--gpu-reset", *which, run=_run_long)
    finally:
        started = _all_must("start", reversed(held))
    if why or started:
        return why or started
    if divides := _are_active(["deploy-mig.service"]):
        return _all_must("restart", divides) or _all_must("restart", _are_active(INSTANCE_READERS))
    return _all_must("restart", _are_active([MODES]))


def own(subject: str) -> str:
    """Runs the command that the site gives for a check of its own."""
    programs = json.loads(SETTINGS.read_text(encoding="utf-8"))["programs"]
    command = next((each.get("repair") for each in programs if each["name"] == subject), None)
    return _must(*command) if command else f"node_health_programs says no repair for {subject}"


def leftovers() -> str:
    """The steps of jobs that still run here, of which Slurm could not rid itself."""
    found = steps()
    return f"still run here: {', '.join(found)}" if found else ""


def dossier() -> dict[str, str]:
    """What a vendor asks for, by subject: serial numbers, logs, what failed; only what is there."""
    said = {}
    for name in _SERIALS:
        try:
            said[name] = (DMI / name).read_text(encoding="utf-8").strip()
        except OSError:
            continue
    found = {"machine": "\n".join(f"{name}: {value}" for name, value in said.items())}
    for subject, command in _QUESTIONS.items():
        text, succeeded = _run(*command.split())
        if succeeded:
            found[subject] = text.strip()[-_MOST_LETTERS:]
    return {subject: text for subject, text in found.items() if text}


def main(verb: str, arguments: dict[str, Any]) -> None:
    """Does what it is asked for and prints the answer as one line."""
    verbs: dict[str, Callable[..., Any]] = {
        "restart": restart,
        "mount": mount,
        "remount": remount,
        "clean": clean,
        "set_clock": set_clock,
        "reset_gpu": reset_gpu,
        "own": own,
        "leftovers": leftovers,
        "dossier": dossier,
    }
    try:
        answer = verbs[verb](**arguments)
    except (OSError, ValueError, KeyError) as problem:
        answer = f"{type(problem).__name__}: {problem}"
    tell(answer)
