"""What deploy runs on a host: looks at what the phases manage there, and keeps a record of it.

Sent as text over ssh and run as root, with the standard library of Python 3.9 alone. A record of a phase::

    {"fingerprint": …, "at": seconds, "version": …, "system": …,
     "managed": {kind: {name: state}}, "probes": [{"name", "argv", "ignore", "must_be_empty", "state"}]}

The state of a file is its type, mode, owner, group and content or target; of a package its version; of a
service whether it runs, how it was started, and whether it is enabled; of a user or group its entry; of a
mount its source, type and options; of a sysctl its value; of a kernel module whether it is loaded; of
hardware how much there is. What is not there is null. What a probe that ``must_be_empty`` prints was never
right, whenever it was recorded: each of its lines is an objection of its own.

Beside the records lie what was managed once and is no more (``left.json``, by kind and name as it was
recorded), the records of phases that are being worked on (``converged/<phase>.was``), by phase what a run
left to a later one (``pending.json``), and on controllers the hosts that the cluster has (``hosts.json``).
"""

from __future__ import annotations

import grp
import hashlib
import json
import os
import pwd
import re
import select
import signal
import stat
import subprocess
import sys
import time

from deploy.run.host_commands import tell

# Both typing and pathlib take longer to import than all the rest takes to run.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

DIRECTORY = "/var/lib/deploy/converged"
_MOUNTINFO = "/proc/self/mountinfo"
_RECORD, _FORGOTTEN = ".json", ".was"
_PENDING = "pending.json"
_PROBE_SECONDS = 10
_PYTHON = ("python3", "-IS", "-c")
"""How probes that are programs are asked."""
_UNANSWERED = "failed"
_GPU = re.compile(r"nvidia\d+$")
_CHUNK = 1 << 20
_LARGEST_OF_USERS = 1 << 20
_MOST_STEPS = 1000
# By the kind of file system, which is the first word there.
_LOCAL = re.compile(r"(?!nfs|cifs|smb|ceph|lustre|beegfs|gpfs|glusterfs|9p|afs|fuse)")
_NO_ANSWER = {"type": "no answer"}
_ROOTS = ("/etc/", "/run/", "/usr/local/lib/")
_UNITS = (
    *(root + "systemd/" + name for root in ("/etc/", "/run/") for name in ("system", "system.control")),
    "/usr/local/lib/systemd/system",
)
OVERRIDES = re.compile(
    r"/systemd/system[^/]*/[^/]+\.d$|/([^/]+\.conf|limits|preferences|profile|sshd_config|sysctl)\.d$"
)
"""Directories in which a file of others changes what a file of deploy's says; in others it adds something."""
_SLURM = ("slurm-client", "slurm-smd-client")
"""What every host of a cluster has of Slurm: the distribution's, or by SchedMD's packaging."""
_NO_DROP_IN = re.compile(r"^\.|~$|\.(dpkg|ucf)-[a-z]+$|\.(bak|old|orig|swp)$")
_OF_THIS_START = re.compile(r" --wsrep[-_](new[-_]cluster|start[-_]position=\S*)")
"""What the unit of MariaDB adds by itself: of a member of a cluster it is another one at every start."""
_OF_A_PACKAGE = "of a package"
_ENVIRONMENT = {
    **os.environ,
    "LC_ALL": "C",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
}


class _Forked:
    """Work in a process of its own, whose standard output is its answer."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._reads, writes = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            code = 1
            try:
                # One that hangs must hold nothing that whoever asks waits for.
                nothing = os.open(os.devnull, os.O_RDWR)
                for number, place in enumerate((nothing, writes, nothing)):
                    os.dup2(place, number)
                os.environ.update(_ENVIRONMENT)
                sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w", encoding="utf-8", errors="replace")
                try:
                    work()
                    code = 0
                except SystemExit as end:
                    code = end.code if isinstance(end.code, int) else int(end.code is not None)
                finally:
                    sys.stdout.flush()
            finally:
                # Whatever went wrong: a second one of whoever asks must not go on from here.
                os._exit(code)
        os.close(writes)

    def ended(self) -> tuple[str, bool]:
        """What it said, and whether it succeeded."""
        text, until = b"", time.monotonic() + _PROBE_SECONDS
        try:
            while select.select([self._reads], [], [], max(0, until - time.monotonic()))[0]:
                said = os.read(self._reads, _CHUNK)
                if not said:
                    return text.decode(errors="replace"), os.waitpid(self._child, 0)[1] == 0
                text += said
        finally:
            os.close(self._reads)
        os.kill(self._child, signal.SIGKILL)
        return "TimeoutExpired", False


def _said(*command: str) -> tuple[str, bool]:
    """Standard output of a command, and whether it succeeded; whatever happens is an answer."""
    return _ended(_begun(*command))


def _begun(*command: str) -> subprocess.Popen[str] | _Forked | OSError:
    """A command that runs; of one that cannot run, why."""
    if command[:-1] == _PYTHON:
        # Another Python would take longer to start than it works.
        return _Forked(lambda: exec(compile(command[-1], "<probe>", "exec"), {"__name__": "__main__"}))  # noqa: S102
    try:
        return subprocess.Popen(
            command,
            env=_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as problem:
        return problem


def _ended(begun: subprocess.Popen[str] | _Forked | OSError) -> tuple[str, bool]:
    """What a command that was begun said, and whether it succeeded."""
    if isinstance(begun, OSError):
        return type(begun).__name__, False
    if isinstance(begun, _Forked):
        return begun.ended()
    with begun:
        try:
            text, _ = begun.communicate(timeout=_PROBE_SECONDS)
        except subprocess.TimeoutExpired as problem:
            begun.kill()
            return type(problem).__name__, False
    return text, begun.returncode == 0


def files(paths: Iterable[str]) -> dict[str, Any]:
    """The state of files, links and directories."""
    places: dict[str, list[str]] = {"": []}
    for place in _remote_places():
        places[place] = []
    for path in paths:
        places[_remote_place(path, [*places])].append(path)
    found = {path: _file(path) for path in places.pop("")}
    for place in sorted(places):
        found.update(_in_time(places[place]))
    return found


def _remote_places() -> list[str]:
    """The mount points of file systems that may not answer: a server's, or a program's."""
    with open(_MOUNTINFO, encoding="utf-8", errors="replace") as table:
        lines = [line.partition(" - ") for line in table]
    return [_plain_path(before.split()[4]) for before, _, after in lines if not _LOCAL.match(after)]


def _plain_path(text: str) -> str:
    """A path of mountinfo, where blanks and the like are octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), text)


def _remote_place(path: str, places: list[str]) -> str:
    """In which of these places a path leads in the end; empty where in none."""
    real = _leads_to(path, places)
    return max((place for place in places if real.startswith(place + "/")), key=len, default="")


def _leads_to(path: str, places: list[str]) -> str:
    """Where a path is when the links on its way were followed, as far as that asks none of these places."""
    done, (*left, last) = "/", path.split("/")[1:]
    for _ in range(_MOST_STEPS):
        if not left or done in places:
            break
        here = os.path.normpath(os.path.join(done, left.pop(0)))
        try:
            target = os.readlink(here)
        except OSError:
            done = here
            continue
        done, left = "/" if target.startswith("/") else done, [*target.split("/"), *left]
    return os.path.join(done, *left, last)


def _in_time(paths: list[str]) -> dict[str, Any]:
    """The same by a process of its own, for which nobody waits longer than for a probe."""
    if not paths:
        return {}
    asked = _Forked(lambda: sys.stdout.write(json.dumps({path: _file(path) for path in paths})))
    text, succeeded = asked.ended()
    return dict(json.loads(text)) if succeeded else {path: dict(_NO_ANSWER) for path in paths}


def _file(path: str) -> dict[str, str] | None:
    try:
        return _state(path)
    except PermissionError:
        return _as_owner(path)
    except OSError:
        return None


def _as_owner(path: str) -> dict[str, str] | None:
    """What those see to whom the place belongs, where root itself may not look (root_squash)."""
    try:
        os.seteuid(_keeper(path))
        return _state(path)
    except PermissionError:
        return dict(_NO_ANSWER)
    except OSError:
        return None
    finally:
        os.seteuid(os.getuid())


def _keeper(path: str) -> int:
    """Who owns the deepest directory on the way that can be seen."""
    place = os.path.dirname(path)
    while True:
        try:
            return os.stat(place).st_uid
        except PermissionError:
            place = os.path.dirname(place)


def _state(path: str) -> dict[str, str]:
    found = os.lstat(path)
    if _is_misled(path):
        return {"type": "behind a link that is not root's"}
    if stat.S_ISLNK(found.st_mode):
        return {"type": "link", "target": os.readlink(path)}
    state = {"mode": format(stat.S_IMODE(found.st_mode), "04o")}
    state["owner"], state["group"] = _name(pwd.getpwuid, found.st_uid), _name(grp.getgrgid, found.st_gid)
    if stat.S_ISREG(found.st_mode):
        return {"type": "file", "content": _content(path), **state}
    return {"type": "directory" if stat.S_ISDIR(found.st_mode) else "other", **state}


def _is_misled(path: str) -> bool:
    """Whether somebody else than root says where a path leads to; in root's directories nobody else can."""
    place = os.path.dirname(path)
    while place != "/":
        status, above = os.lstat(place), os.stat(os.path.dirname(place))
        if (
            stat.S_ISLNK(status.st_mode)
            and status.st_uid != 0
            and (above.st_uid != 0 or above.st_mode & 0o022)
        ):
            return True
        place = os.path.dirname(place)
    return False


def _name(entry_of: Callable[[int], Any], number: int) -> str:
    try:
        return str(entry_of(number)[0])
    except KeyError:
        return str(number)


def _content(path: str, kind: str = "sha256") -> str:
    """A hash of a regular file; a large one of anybody else than root is not read."""
    content = hashlib.new(kind, usedforsecurity=False)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    with open(path, "rb", opener=lambda name, _: os.open(name, flags)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return "not a regular file"
        if status.st_uid != 0 and status.st_size > _LARGEST_OF_USERS:
            return f"{status.st_size} bytes"
        while chunk := file.read(_CHUNK):
            content.update(chunk)
    return content.hexdigest()


def packages(names: list[str]) -> dict[str, Any]:
    """The versions of installed packages."""
    versions: dict[str, Any] = dict.fromkeys(names)
    if not names:
        return versions
    text, _ = _said("dpkg-query", "--show", "--showformat=${Package} ${db:Status-Abbrev}${Version}\n", *names)
    for line in text.splitlines():
        name, status, *version = line.split()
        if status.startswith("ii") and name in versions:
            versions[name] = " ".join(version)
    return versions


def services(names: list[str]) -> dict[str, Any]:
    """Whether services run, and what systemd does with them at boot."""
    found: dict[str, Any] = dict.fromkeys(names)
    if not names:
        return found
    properties = "LoadState,ActiveState,SubState,UnitFileState,MainPID"
    text, _ = _said("systemctl", "show", "--property=" + properties, "--", *names)
    for name, block in zip(names, text.split("\n\n")):  # noqa: B905 - strict= came with Python 3.10
        said = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if said.get("LoadState") == "not-found":
            continue
        waits = said.get("ActiveState") == "activating" and said.get("SubState", "").startswith(
            "auto-restart"
        )
        runs = said.get("ActiveState") in ("active", "reloading", "refreshing", "activating") and not waits
        found[name] = {"runs": runs, "at boot": said.get("UnitFileState", "")}
        if command := _command_of(said.get("MainPID", "0")):
            found[name]["command"] = command
    return found


def _command_of(number: str) -> str:
    """How a process was started; empty where it calls itself something else, as many servers do."""
    try:
        with open("/proc/" + number + "/cmdline", encoding="utf-8", errors="replace") as file:
            text = file.read().replace("\0", " ").strip()
    except OSError:
        return ""
    return _OF_THIS_START.sub("", text) if text.startswith("/") and ": " not in text else ""


def users(names: list[str]) -> dict[str, Any]:
    """Accounts, without their passwords, which are their own."""
    entries = grp.getgrall()
    found: dict[str, Any] = dict.fromkeys(names)
    for name in names:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        found[name] = {
            "uid": entry.pw_uid,
            "gid": entry.pw_gid,
            "home": entry.pw_dir,
            "shell": entry.pw_shell,
            "name": entry.pw_gecos,
            "groups": sorted(group.gr_name for group in entries if name in group.gr_mem),
        }
    return found


def groups(names: list[str]) -> dict[str, Any]:
    """The ids of groups."""
    found: dict[str, Any] = dict.fromkeys(names)
    for name in names:
        try:
            found[name] = grp.getgrnam(name).gr_gid
        except KeyError:
            continue
    return found


def mounts(paths: list[str]) -> dict[str, Any]:
    """What is mounted where."""
    found: dict[str, Any] = dict.fromkeys(paths)
    with open(_MOUNTINFO, encoding="utf-8", errors="replace") as table:
        for line in table:
            before, _, after = line.partition(" - ")
            path = _plain_path(before.split()[4])
            if path in found:
                kind, source, of_system = after.split()[:3]
                options = before.split()[5].split(",")
                if "ro" in of_system.split(","):
                    # The file system itself is for reading alone, and so is every place where it is seen.
                    options[0] = "ro"
                found[path] = {"type": kind, "source": source, "options": sorted(options)}
    return found


def sysctls(names: list[str]) -> dict[str, Any]:
    """Kernel settings."""
    found: dict[str, Any] = dict.fromkeys(names)
    for name in names:
        # A name may have a slash where a part of it has a dot.
        path = name if "/" in name else name.replace(".", "/")
        try:
            with open("/proc/sys/" + path, encoding="utf-8") as file:
                found[name] = " ".join(file.read().split())
        except OSError:
            continue
    return found


def modules(names: list[str]) -> dict[str, Any]:
    """Whether kernel modules are there, loaded or built in."""
    return {name: os.path.isdir("/sys/module/" + name.replace("-", "_")) for name in names}


def hardware(names: list[str]) -> dict[str, Any]:
    """What a hardware contract speaks of, so that a machine that lost some is looked at again."""
    found: dict[str, Any] = dict.fromkeys(names)
    if "cpus" in found:
        found["cpus"] = len(os.sched_getaffinity(0))
    if "memory" in found:
        # In GiB: a new kernel keeps a little more or less for itself.
        found["memory"] = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30))
    if "gpus" in found:
        found["gpus"] = sum(bool(_GPU.match(name)) for name in os.listdir("/dev"))
    return found


def lying_beside(managed: dict[str, Iterable[str]]) -> set[str]:
    """The files that lie where they can override what is managed: in directories of drop-ins, and units."""
    places = {os.path.dirname(path) for path in managed.get("files", ())}
    inside = [(place, root) for place in places for root in _ROOTS if place.startswith(root)]
    places |= {other + place[len(root) :] for place, root in inside for other in _ROOTS}
    units = [name if "." in name else name + ".service" for name in managed.get("services", ())]
    places |= {place + "/" + unit + ".d" for place in _UNITS for unit in [*units, "service"] if units}
    found = {path for place in _UNITS for unit in units if _is_own_unit(path := place + "/" + unit)}
    for place in places:
        if OVERRIDES.search(place) and os.path.isdir(place):
            found |= {place + "/" + name for name in os.listdir(place) if not _NO_DROP_IN.search(name)}
    return {path for path in found if not os.path.isdir(path)}


def _is_own_unit(path: str) -> bool:
    """Whether a unit stands there itself, and not another name of a package's, or of none."""
    return os.path.isfile(path) and not os.path.realpath(path).startswith(("/lib/", "/usr/lib/"))


def of_packages(paths: Iterable[str]) -> set[str]:
    """Those of these files that belong to packages, or were chosen among what packages offer."""
    wanted = sorted(paths)
    text = _said("dpkg-query", "--search", *wanted)[0] if wanted else ""
    owned = {line.rpartition(": ")[2] for line in text.splitlines()}
    chosen = {path for path in wanted if os.path.islink(path) and "/alternatives/" in os.readlink(path)}
    return owned.intersection(wanted) | chosen


LOOKS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "files": files,
    "beside": files,
    "packages": packages,
    "services": services,
    "users": users,
    "groups": groups,
    "mounts": mounts,
    "sysctls": sysctls,
    "modules": modules,
    "hardware": hardware,
}


def probed(probe: dict[str, Any]) -> str:
    """A hash of what a role's own question is answered."""
    lines = _answered(probe, _said(*probe["argv"]))
    return _UNANSWERED if lines is None else _hashed("\n".join(lines))


def _answered(probe: dict[str, Any], said: tuple[str, bool]) -> list[str] | None:
    """The lines of the answer, without those that change by themselves; None where there is no answer."""
    text, succeeded = said
    if not succeeded:
        return None
    ignored = [re.compile(pattern) for pattern in probe.get("ignore", ())]
    return [line for line in text.splitlines() if not any(pattern.search(line) for pattern in ignored)]


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def system() -> str:
    """The distribution and its version: what roles choose by."""
    said: dict[str, str] = {}
    try:
        with open("/etc/os-release", encoding="utf-8") as file:
            said = dict(line.rstrip().replace('"', "").split("=", 1) for line in file if "=" in line)
    except OSError:
        pass
    return said.get("ID", "?") + " " + said.get("VERSION_ID", "?")


def _records(ending: str = _RECORD) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    try:
        names = os.listdir(DIRECTORY)
    except OSError:
        return found
    for name in names:
        content = _read(os.path.join(DIRECTORY, name)) if name.endswith(ending) else None
        if content:  # no record is as good as one that cannot be read: the phase runs
            found[name[: -len(ending)]] = content
    return found


def _read(path: str) -> dict[str, Any]:
    """What a file of ours says; nothing where it is missing or broken."""
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _write(path: str, content: dict[str, Any]) -> None:
    """A power cut leaves the old one or the new one: what nobody else remembers is in it."""
    with os.fdopen(os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".new", path)
    _force_to_disk({os.path.dirname(path)})


def _beside(name: str) -> str:
    """A file of ours that is no record."""
    return os.path.join(os.path.dirname(DIRECTORY), name)


def _looked_at(managed: Iterable[dict[str, Iterable[str]]]) -> dict[str, dict[str, Any]]:
    """The states by kind of all that is managed: each kind is looked at once, not once a phase."""
    names: dict[str, set[str]] = {kind: set() for kind in LOOKS}
    for part in managed:
        for kind, wanted in part.items():
            names[kind].update(wanted)
    return {kind: look(sorted(names[kind])) for kind, look in LOOKS.items()}


class _Probes:
    """The answers of probes, which are all asked at once; phases that ask the same get the same answer."""

    def __init__(self, probes: Iterable[dict[str, Any]]) -> None:
        asked = {json.dumps(probe["argv"]): probe["argv"] for probe in probes}
        self._begun = {key: _begun(*argv) for key, argv in asked.items()}
        self._said: dict[str, tuple[str, bool]] = {}

    def state(self, probe: dict[str, Any]) -> str:
        lines = self._lines(probe)
        return _UNANSWERED if lines is None else _hashed("\n".join(lines))

    def differences(self, probe: dict[str, Any], recorded: str) -> list[dict[str, Any]]:
        """What differs from a recorded state, or would differ whatever was recorded."""
        if probe.get("must_be_empty") and (lines := self._lines(probe)):
            return [_difference("objection", line, None, "is there") for line in lines]
        state = self.state(probe)
        # One that cannot be asked said nothing the last time either.
        is_as_recorded = state == recorded or probe.get("must_be_empty")
        return (
            []
            if is_as_recorded and state != _UNANSWERED
            else [_difference("probe", probe["name"], recorded, state)]
        )

    def _lines(self, probe: dict[str, Any]) -> list[str] | None:
        key = json.dumps(probe["argv"])
        if key not in self._said:
            self._said[key] = _ended(self._begun.pop(key))
        return _answered(probe, self._said[key])


def _verified(
    records: dict[str, dict[str, Any]], now: dict[str, dict[str, Any]], probes: _Probes
) -> dict[str, Any]:
    """For each recorded phase its fingerprint and where the host differs from the record."""
    here = system()
    answers: dict[str, Any] = {}
    appeared = _appeared(records)
    for phase, record in records.items():
        drift = []
        for kind, states in record["managed"].items():
            for name, state in states.items():
                if state != _OF_A_PACKAGE and not _agrees(state, now[kind][name]):
                    drift.append(_difference(kind, name, state, now[kind][name]))
        drift += [_difference("beside", path, None, _file(path)) for path in appeared[phase]]
        for probe in record["probes"]:
            drift += probes.differences(probe, probe["state"])
        if record["system"] != here:
            drift.append(_difference("system", "", record["system"], here))
        answers[phase] = {key: record[key] for key in ("fingerprint", "at", "version")}
        answers[phase]["drift"] = drift
    return answers


def _appeared(records: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """By phase what lies beside its files and was not there; what packages bring is the packages'."""
    known = _known(record["managed"] for record in records.values())
    # What phases left that the host takes part in no more is told by itself.
    known.update(_ever_managed().get("files", ()))
    # Records of earlier versions do not say what was there.
    asked = {phase: record["managed"] for phase, record in records.items() if "beside" in record["managed"]}
    new = {phase: lying_beside(managed) - known for phase, managed in asked.items()}
    owned = of_packages(set().union(*new.values()))
    return {phase: sorted(new.get(phase, set()) - owned) for phase in records}


def _known(managed: Iterable[dict[str, Iterable[str]]]) -> set[str]:
    return {path for part in managed for kind in ("files", "beside") for path in part.get(kind, ())}


def _agrees(recorded: object, found: object) -> bool:
    """Whether something is as it was recorded; of what it was not recorded nothing is known."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        # What did not answer is not known to be as it was, even when it did not answer then, either.
        return recorded != _NO_ANSWER and all(
            found.get(part) == _lasting(part, value) for part, value in recorded.items()
        )
    return recorded == found


def _lasting(part: str, value: object) -> object:
    """What was recorded, without what records of earlier versions say of one start alone."""
    return _OF_THIS_START.sub("", value) if part == "command" and isinstance(value, str) else value


def _as_left(name: str, reported: object, found: object) -> object:
    """The state that is recorded: what modules reported that they left, and of the rest what is there.

    So what somebody else did since is no part of it, and differs from now on.
    """
    if not isinstance(reported, dict):
        return reported
    known = {part: value for part, value in reported.items() if value is not None}
    there = found if isinstance(found, dict) else {}
    kinds = known.get("type"), there.get("type")
    # Modules look through links.
    if not known or (kinds[1] == "link" != kinds[0]):
        return found
    written = known.pop("written", None)
    if written and "content" not in reported and there.get("type") == "file":
        # Of what may hold a secret the modules tell no checksum, only when it was written.
        is_other = os.lstat(name).st_mtime_ns != written
        known["content"] = "as its service read it" if is_other else there["content"]
    algorithm, _, checksum = str(known.get("content", "")).rpartition(":")
    if algorithm and there.get("type") == "file":
        said = _content(name, algorithm)
        # Of one that is too large to be read there is no checksum.
        if said == checksum or not re.fullmatch(r"[0-9a-f]+", said):
            known["content"] = there["content"]
    return known if None not in kinds and kinds[0] != kinds[1] else {**there, **known}


def _difference(kind: str, name: str, recorded: object, found: object) -> dict[str, Any]:
    difference: dict[str, Any] = {"kind": kind, "name": name, "recorded": recorded, "found": found}
    if kind in ("files", "beside") and found and found != _NO_ANSWER:
        try:
            status = os.lstat(name)
        except OSError:
            return difference  # its owner took it away meanwhile, or it lies where root may not look
        difference["changed"] = max(status.st_mtime, status.st_ctime)
    return difference


def forget(phases: Iterable[str]) -> None:
    """Takes records away: what is about to be worked on is not converged until it is recorded again.

    What was managed there stays known, so that what is managed no more afterwards can be named.
    """
    for phase in phases:
        path = os.path.join(DIRECTORY, phase)
        if os.path.exists(path + _RECORD):
            os.rename(path + _RECORD, path + _FORGOTTEN)
    _force_to_disk({DIRECTORY})


def _force_files_to_disk(paths: Iterable[str]) -> None:
    """Files with their directories; not those on a server, which may not answer."""
    places = _remote_places()
    here = {path for path in paths if not _remote_place(path, places)}
    _force_to_disk(here | {os.path.dirname(path) for path in here})


def _force_to_disk(paths: Iterable[str]) -> None:
    """All but large files of others than root."""
    for path in paths:
        try:
            if _is_misled(path):
                continue
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            status = os.fstat(descriptor)
            if status.st_uid == 0 or status.st_size <= _LARGEST_OF_USERS:
                os.fsync(descriptor)
        except OSError:
            pass  # no file of a disk
        finally:
            os.close(descriptor)


def record(
    phases: dict[str, dict[str, Any]],
    only: list[str],
    part_in: list[str],
    version: str,
    pending: dict[str, list[str]] | None = None,
) -> dict[str, list[dict[str, Any]]]:
    """Writes down what the run left, and how the rest is now; takes away the records of others than ``only``.

    ``pending`` is by phase what the run left to a later one.

    Answers what is ``differing`` from what the run left, and what is ``left``: was managed before, is managed
    no more by a phase that the host takes ``part_in``, and is still there.

    What a record speaks of is on disk before: Ansible's own modules do not see to it, and after a power cut a
    file without its content would be found only by whoever needs it.
    """
    _force_files_to_disk({path for told in phases.values() for path in told["managed"].get("files", ())})
    os.makedirs(DIRECTORY, mode=0o700, exist_ok=True)
    os.chmod(DIRECTORY, 0o700)
    before = _ever_managed()
    here = system()
    now = _looked_at(told["managed"] for told in phases.values())
    probes = _Probes(probe for told in phases.values() for probe in told["probes"])
    kept = [{"files": of["managed"].get("files", {})} for phase, of in _records().items() if phase in only]
    known = _known([told["managed"] for told in phases.values()] + kept) | set(before.get("files", ()))
    others = {phase: lying_beside(told["managed"]) - known for phase, told in phases.items()}
    owned = of_packages(set().union(*others.values()))
    differing: list[dict[str, Any]] = []
    for phase, told in phases.items():
        managed = {
            kind: {name: _as_left(name, reported, now[kind][name]) for name, reported in names.items()}
            for kind, names in told["managed"].items()
        }
        managed["beside"] = {
            path: _OF_A_PACKAGE if path in owned else _file(path) for path in sorted(others[phase])
        }
        differing += [
            _difference(kind, name, state, now[kind][name])
            for kind, states in managed.items()
            for name, state in states.items()
            if kind != "beside" and not _agrees(state, now[kind][name])
        ]
        content = {
            "fingerprint": told["fingerprint"],
            "at": time.time(),
            "version": version,
            "system": here,
            "managed": managed,
            "probes": [{**probe, "state": probes.state(probe)} for probe in told["probes"]],
        }
        for probe in content["probes"]:
            differing += probes.differences(probe, probe["state"])
        _write(os.path.join(DIRECTORY, phase + _RECORD), content)
    forget(set(_records()) - set(only))
    for phase in set(_records(_FORGOTTEN)) - (set(part_in) - phases.keys()):
        os.unlink(os.path.join(DIRECTORY, phase + _FORGOTTEN))
    others_pending = {of: texts for of, texts in _read(_beside(_PENDING)).items() if of in part_in}
    undone = {of: texts for of, texts in {**others_pending, **(pending or {})}.items() if of not in phases}
    if undone != _read(_beside(_PENDING)):
        _write(_beside(_PENDING), undone)
    left = _left(before, part_in)
    if left or os.path.exists(_beside("left.json")):
        _write(_beside("left.json"), left)
    return {"differing": differing, "left": _named(left)}


def left_over(phases: Iterable[str]) -> list[dict[str, Any]]:
    """What was managed once, belongs to none of these phases, and is still there."""
    return _named(_left(_ever_managed(), phases))


def _ever_managed() -> dict[str, dict[str, Any]]:
    """By kind and name as it was recorded last."""
    states: dict[str, dict[str, Any]] = {}
    records = [*_records(_FORGOTTEN).values(), *_records().values()]
    for managed in [_read(_beside("left.json")), *map(_managed_by, records)]:
        for kind, found in managed.items():
            states.setdefault(kind, {}).update(found)
    return states


def _managed_by(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What a record knows, with what a role asks for itself."""
    return {**record["managed"], "probes": {probe["name"]: probe for probe in record["probes"]}}


def _left(before: dict[str, dict[str, Any]], phases: Iterable[str]) -> dict[str, dict[str, Any]]:
    wanted = set(phases)
    kept: dict[str, set[str]] = {}
    for phase, content in [*_records(_FORGOTTEN).items(), *_records().items()]:
        for kind, names in _managed_by(content).items() if phase in wanted else ():
            kept.setdefault(kind, set()).update(map(_plain, names))
    surplus = {
        kind: {
            name: state
            for name, state in before.get(kind, {}).items()
            if _plain(name) not in kept.get(kind, ())
        }
        for kind in _STAYS
    }
    left: dict[str, dict[str, Any]] = {}
    for kind, states in surplus.items():
        now = _now(kind, states) if states else {}
        found = {
            name: state
            for name, state in states.items()
            if state and now[name] and _STAYS[kind](state, now[name])
        }
        if found:
            left[kind] = found
    return left


def _now(kind: str, states: dict[str, Any]) -> dict[str, Any]:
    if kind == "probes":
        return {name: probed(probe) for name, probe in states.items()}
    return LOOKS[kind](sorted(states))


def _plain(name: str) -> str:
    """One name for a service that is written in two ways."""
    return name.removesuffix(".service")


def _named(left: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"kind": kind, "name": name} for kind, states in left.items() for name in states]


# By kind, whether something that nobody manages any more does what it did. Packages, kernel settings and
# modules are not here: by themselves they do nothing, and others may need them.
_STAYS: dict[str, Callable[[dict[str, Any], Any], bool]] = {
    # Of a file that was changed since somebody took care. A directory does nothing.
    "files": lambda was, now: now["type"] != "directory" and _text(was) == _text(now),
    "services": lambda _, now: bool(now["runs"]) or now["at boot"] in ("enabled", "enabled-runtime"),
    "users": lambda *_: True,
    "groups": lambda *_: True,
    "mounts": lambda was, now: was["source"] == now["source"],
    # What is answered as if nobody had left: the rules of a firewall, limits of space.
    "probes": lambda was, now: now == was["state"] and now not in ("failed", _hashed("")),
}


def _text(file: dict[str, Any]) -> tuple[Any, ...]:
    return file["type"], file.get("content"), file.get("target")


def look(phases: Iterable[str]) -> dict[str, Any]:
    """All that a run wants to know of a host that takes part in these phases."""
    records = _records()
    probes = _Probes(probe for record in records.values() for probe in record["probes"])
    slurm: dict[str, Iterable[str]] = {"packages": _SLURM}
    now = _looked_at([slurm, *(record["managed"] for record in records.values())])
    return {
        "records": _verified(records, now, probes),
        "pending": _read(_beside(_PENDING)),
        "left": left_over(phases),
        "hosts": _read(_beside("hosts.json")),
        "slurm": next((now["packages"][name] for name in _SLURM if now["packages"][name]), ""),
    }


def know(hosts: dict[str, Any]) -> None:
    """Keeps, on a controller, the hosts that the cluster has."""
    os.makedirs(os.path.dirname(DIRECTORY), mode=0o755, exist_ok=True)
    _write(_beside("hosts.json"), hosts)


def main(verb: str, arguments: dict[str, Any]) -> None:
    """Does what it is asked for and prints the answer as one line."""
    verbs: dict[str, Callable[..., Any]] = {
        "look": look,
        "left_over": left_over,
        "forget": forget,
        "record": record,
        "know": know,
    }
    tell(verbs[verb](**arguments))
