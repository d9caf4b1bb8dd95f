"""What deploy runs on a login node: types what users type there, and tells what came of it.

Sent as text over ssh and run as root, with the standard library of Python 3.9 alone. Each command has a new
directory below its user's home. However this program ends, by itself, by a signal or because nobody listens
any more, it takes along what it made: directories, processes in them, jobs submitted from them.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import pwd
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
_DIRECTORY = "deploy-try-"
_ENDED = frozenset(
    {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"}
    | {"TIMEOUT"}
)
_ESCAPES = re.compile(rb"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[=>()][0-9A-B]?)")
_PROMPT = re.compile(rb"([$#>]|\[y/N\]) $")
_QUIET_SECONDS = 0.4
_JOBS_EVERY = 1.0
_POLITE_SECONDS = 5
_MOST_OUTPUT = 2_000_000

_stop = threading.Event()
_speaking = threading.Lock()

# Run as the user: root may have no rights in a home on a shared file system.
_WRITE = """
import base64, json, os, sys
place, files, images = json.load(sys.stdin)
os.umask(0o077)
os.makedirs(place)
for name, content in files.items():
    path = os.path.join(place, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(content)
for name, content in images.items():
    with open(os.path.join(place, name), "wb") as file:
        file.write(base64.b64decode(content))
"""
_WHERE = "import json, os, sys; print(os.path.realpath(json.load(sys.stdin)))"
_READ = """
import glob, json, os, sys
place, patterns = json.load(sys.stdin)
found = {}
for pattern in patterns:
    paths = sorted(glob.glob(os.path.join(glob.escape(place), pattern)))
    texts = found[pattern] = {}
    for path in paths:
        with open(path, errors="replace") as file:
            texts[os.path.relpath(path, place)] = file.read(100_000)
print(json.dumps(found))
"""


def say(answer: dict[str, Any] | None) -> None:
    """Tells deploy an answer, or with none that all is well; that nobody listens means to stop."""
    with _speaking:
        try:
            sys.stdout.write(f"deploy:{json.dumps(answer)}\n" if answer else "\n")
            sys.stdout.flush()
        except OSError:
            _stop.set()


def _root(*command: str) -> str:
    done = subprocess.run(
        command,
        env=_ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return done.stdout


def _as_user(user: str, program: str, task: Any) -> str:  # noqa: ANN401 - anything JSON can say
    account = pwd.getpwnam(user)
    done = subprocess.run(
        [sys.executable, "-IS", "-c", program],
        env=_ENVIRONMENT,
        input=json.dumps(task),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd="/",
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=os.getgrouplist(user, account.pw_gid),
    )
    return done.stdout


def place_of(user: str, session: str) -> str:
    """A session's directory in a user's home, links resolved as the user: a home may not answer.

    Raises KeyError for no account, SubprocessError for no answer.
    """
    home = pwd.getpwnam(user).pw_dir
    return f"{_as_user(user, _WHERE, home).strip()}/{session}"


class Jobs:
    """Slurm's jobs by the directory that they were submitted from; asked once for all commands."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = 0.0
        self._rows: list[list[str]] = []

    def of(self, place: str) -> dict[str, str]:
        """The state of each job of a directory now, by its number, as slurmctld knows it."""
        wanted = time.monotonic()
        with self._lock:
            if self._asked < wanted:
                asked = time.monotonic()
                said = _root("squeue", "--all", "--array", "--noheader", "--states=all", "--format=%A|%T|%Z")
                self._rows = [line.split("|", 2) for line in said.splitlines()]
                self._asked = asked
            return {
                row[0]: row[1] for row in self._rows if row[-1] == place or row[-1].startswith(f"{place}/")
            }

    def recorded(self, jobs: Iterable[str]) -> dict[str, str]:
        """The state of jobs, by number, as the accounting has it: its first word."""
        said = _root(
            "sacct",
            *("--allusers", "--allocations", "--noheader", "--parsable2"),
            *("--format=JobIDRaw,State", f"--jobs={','.join(jobs)}"),
        )
        rows = (line.split("|") for line in said.splitlines())
        return {row[0]: row[1].split()[0] for row in rows if row[0] in jobs and row[1]}


class Typist:
    """Types one command as its user."""

    def __init__(self, command: Mapping[str, Any], session: str, jobs: Jobs, seconds: float) -> None:
        self.command = command
        self.user = command["user"]
        self.session = session
        self.place = ""
        self.jobs = jobs
        self.seconds = seconds

    def run(self) -> dict[str, Any]:
        """What came of it, all told; see deploy/judge/user_outcome.py for the keys."""
        began = time.monotonic()
        expect = self.command["expect"]
        answer: dict[str, Any] = {"exit": None, "output": "", "jobs": {}, "files": {}, "trouble": ""}
        try:
            self.place = f"{place_of(self.user, self.session)}/{self.command['id']}"
            _as_user(
                self.user,
                _WRITE,
                [self.place, self.command.get("files", {}), self.command.get("images", {})],
            )
            type_ = self._with_terminal if "input" in self.command else self._without_terminal
            answer["exit"], output, answer["trouble"] = type_()
            answer["output"] = _plain(output)
            if not answer["trouble"] and ("sacct" in expect or "files" in expect):
                answer["jobs"], answer["trouble"] = self._ended_jobs()
            if "files" in expect:
                answer["files"] = json.loads(_as_user(self.user, _READ, [self.place, list(expect["files"])]))
        except subprocess.CalledProcessError as problem:
            said = (problem.stderr or problem.stdout or "").strip().splitlines()
            answer["trouble"] = f"{Path(problem.cmd[0]).name}: {said[-1] if said else problem.returncode}"
        except subprocess.TimeoutExpired as problem:
            answer["trouble"] = f"{Path(problem.cmd[0]).name} gave no answer"
        finally:
            if self.place:
                clean(self.user, self.place, self.jobs)
        return {**answer, "seconds": time.monotonic() - began}

    @property
    def _script(self) -> str:
        return f"cd {shlex.quote(self.place)} || exit\n{self.command['run']}"

    def _without_terminal(self) -> tuple[int | None, bytes, str]:
        process = subprocess.Popen(
            ["su", "--login", self.user, "--command", self._script],
            env=_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd="/",
        )
        assert process.stdout  # noqa: S101 - for mypy
        return self._listen(process, process.stdout.fileno(), [])

    def _with_terminal(self) -> tuple[int | None, bytes, str]:
        ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 250, 0, 0))
        process = subprocess.Popen(
            ["setsid", "--ctty", "su", "--login", self.user, "--session-command", self._script],
            env={**_ENVIRONMENT, "TERM": "dumb"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd="/",
        )
        os.close(theirs)
        try:
            return self._listen(process, ours, self.command["input"].splitlines())
        finally:
            os.close(ours)

    def _listen(
        self, process: subprocess.Popen[bytes], source: int, typed: list[str]
    ) -> tuple[int | None, bytes, str]:
        """Reads until the command has ended; types a line whenever a prompt has been there for a moment."""
        deadline = time.monotonic() + self.seconds
        output, since = b"", 0
        is_open = True
        while is_open or process.poll() is None:
            had_ended = process.poll() is not None  # asked before looking: what it said last is there by then
            if _stop.is_set() or time.monotonic() > deadline:
                waiting = f", and showed no prompt for: {typed[0]}" if typed else ""
                self._end(process)
                return None, output, f"it had not ended after {self.seconds:.0f} s{waiting}"
            if not is_open:
                time.sleep(0.1)
            elif select.select([source], [], [], _QUIET_SECONDS)[0]:
                read = _read(source)
                is_open = bool(read)
                output += read
                too_much = max(len(output) - _MOST_OUTPUT, 0)
                output, since = output[too_much:], max(since - too_much, 0)
            elif had_ended and not typed:
                break  # something that it left behind still holds its output
            elif typed and _PROMPT.search(_ESCAPES.sub(b"", output[since:])):
                since = len(output)
                os.write(source, typed.pop(0).encode() + b"\n")
        return process.wait(), output, ""

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_POLITE_SECONDS)
        process.kill()
        process.wait()

    def _ended_jobs(self) -> tuple[dict[str, str], str]:
        """The recorded state of all jobs, once they have ended, and what was in the way."""
        deadline = time.monotonic() + self.seconds
        recorded: dict[str, str] = {}
        while not _stop.is_set():
            known = self.jobs.of(self.place)
            if all(state in _ENDED for state in known.values()):
                recorded = self.jobs.recorded(known) if known else {}
                if all(recorded.get(job) in _ENDED for job in known):
                    return recorded, ""
            time.sleep(_JOBS_EVERY)
            if time.monotonic() > deadline:
                late = ", ".join(
                    f"{job} {state}" for job, state in known.items() if recorded.get(job) not in _ENDED
                )
                return recorded, f"after {self.seconds:.0f} s its jobs had not ended: {late}"
        return recorded, "interrupted"


def _read(source: int) -> bytes:
    try:
        return os.read(source, 65536)
    except OSError:  # the other end of a terminal is closed
        return b""


def _plain(output: bytes) -> str:
    text = _ESCAPES.sub(b"", output).decode(errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "")


def clean(user: str, place: str, jobs: Jobs) -> None:
    """Ends jobs and processes of a directory, and removes it."""
    with contextlib.suppress(subprocess.SubprocessError, OSError):
        active = [job for job, state in jobs.of(place).items() if state not in _ENDED]
        if active:
            _root("scancel", *active)
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            where = str((process / "cwd").readlink())
            if where == place or where.startswith(f"{place}/"):
                os.kill(int(process.name), signal.SIGKILL)
    program = "import json, shutil, sys; shutil.rmtree(json.load(sys.stdin), ignore_errors=True)"
    with contextlib.suppress(subprocess.SubprocessError, OSError, KeyError):
        _as_user(user, program, place)


def sizes() -> list[dict[str, Any]]:
    """The kinds of nodes in each partition: how many, with how many CPUs and how much memory in MiB."""
    said = _root("sinfo", "--all", "--noheader", "--exact", "--format=%R|%D|%c|%m")
    rows = (line.replace("+", "").split("|") for line in said.splitlines())
    return [
        {"partition": row[0], "nodes": int(row[1]), "cpus": int(row[2]), "memory_mb": int(row[3])}
        for row in rows
    ]


def facts() -> dict[str, Any]:
    """What this host is."""
    system = Path("/etc/os-release").read_text(encoding="utf-8")
    name = re.search(r'^PRETTY_NAME="?(.*?)"?$', system, re.MULTILINE)
    return {
        "host": os.uname().nodename,
        "system": name[1] if name else "",
        "slurm": _root("sinfo", "--version").strip(),
        "partitions": sizes(),
    }


def _unfit(command: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """Why the cluster is too small for a command; empty when it is not."""
    needs = command.get("needs", {})
    if any(all(kind[key] >= number for key, number in needs.items()) for kind in known["partitions"]):
        return ""
    return "needs " + ", ".join(f"{number} {key}" for key, number in needs.items()) if needs else ""


def image() -> str:
    """A small root file system as squashfs, in base64, made of this host's own programs."""
    names = (
        "sh",
        "bash",
        "cat",
        "ls",
        "touch",
        "env",
        "true",
        "sleep",
        "id",
        "mkdir",
        "rm",
        "grep",
        "hostname",
    )
    scratch = Path(_root("mktemp", "--directory").strip())
    try:
        root = scratch / "root"
        for name in ("dev", "proc", "sys", "tmp", "run", "root", "mnt", "home"):
            (root / name).mkdir(parents=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            (root / "usr" / name).mkdir(parents=True)
            (root / name).symlink_to(f"usr/{name}")
        # Where these are not, Enroot makes directories that nobody can read, and cannot export them.
        (root / "var").mkdir()
        for name, place in (("run", "/run"), ("lock", "/run/lock")):
            (root / "var" / name).symlink_to(place)
        programs = [path for name in names if (path := shutil.which(name, path=_ENVIRONMENT["PATH"]))]
        needed = {Path(program) for program in programs}
        for program in programs:
            needed |= {
                Path(path)
                for path in re.findall(r"(?:=> |^\t)(/\S+) \(0x", _root("ldd", program), re.MULTILINE)
            }
        for file in (*needed, Path("/etc/os-release")):
            target = root / file.relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
        (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n", encoding="utf-8")
        (root / "etc/group").write_text("root:x:0:\n", encoding="utf-8")
        _root("mksquashfs", str(root), str(scratch / "image"), "-all-root", "-quiet", "-no-progress")
        return base64.b64encode((scratch / "image").read_bytes()).decode()
    finally:
        shutil.rmtree(scratch)


def make_image(_: Mapping[str, Any]) -> None:
    """Tells an image, for a login node without the programs that make one."""
    threading.Thread(target=_beat, daemon=True).start()
    say({"image": image()})


def leave(task: Mapping[str, Any]) -> None:
    """Takes away what an interrupted session may have left: ``session``, ``users``."""
    jobs = Jobs()
    for user in task["users"]:
        with contextlib.suppress(KeyError, subprocess.SubprocessError):
            clean(user, place_of(user, task["session"]), jobs)
    say({"left": True})


def try_all(task: Mapping[str, Any]) -> None:
    """Types ``commands``, ``at_once`` at a time, each for at most ``seconds``, in ``session``."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, lambda *_: _stop.set())
    threading.Thread(target=_beat, daemon=True).start()
    jobs, known = Jobs(), facts()
    say({"facts": known})

    def one(command: Mapping[str, Any]) -> None:
        if _stop.is_set():
            return
        if why := _unfit(command, known):
            say({"id": command["id"], "skipped": why})
            return
        try:
            say({"id": command["id"], **Typist(command, task["session"], jobs, task["seconds"]).run()})
        except KeyError:
            say({"id": command["id"], "trouble": f"there is no account {command['user']}"})

    try:
        for command in task["commands"]:
            if command.get("alone"):
                one(command)
        with ThreadPoolExecutor(task["at_once"]) as pool:
            list(pool.map(one, [command for command in task["commands"] if not command.get("alone")]))
    finally:
        leave({"session": task["session"], "users": sorted({c["user"] for c in task["commands"]})})


def _beat() -> None:
    while not _stop.is_set():
        say(None)
        time.sleep(1)


def main(verb: str, task: Mapping[str, Any]) -> None:
    """Does one of the verbs, and tells a fault as such."""
    try:
        {"try": try_all, "leave": leave, "image": make_image}[verb](task)
    except (OSError, subprocess.SubprocessError, ValueError) as problem:
        said = getattr(problem, "stderr", "") or str(problem)
        say({"fault": said.strip().splitlines()[-1] if said.strip() else type(problem).__name__})
