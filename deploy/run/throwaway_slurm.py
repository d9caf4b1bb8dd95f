"""A Slurm that lives for as long as jobs are tried on it: database, slurmdbd and slurmctld.

Run as root in a systemd unit with a network, a /tmp and a /mnt of its own (``replay.py``), so that all of
it is gone with the unit. Nodes are not there: the configuration calls them cloud nodes that are switched off,
and those take jobs. With the standard library of Python 3.9 alone.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ADDRESS = "192.0.2.1"
"""For documentation (RFC 5737). Slurm opens no socket on a host whose only addresses are loopback ones."""
FILES = ("slurm.conf", "gres.conf", "cgroup.conf", "topology.conf", "job_submit.lua")
"""What decides about a job, of the files that slurmctld reads."""
_DENY = "DenyOnLimit"
_POLICY = "accounting/QOS policy"
_AT_ONCE = 4
_PATIENCE = 240
_ENDS = 137
# Tables of the cluster's history; of all others the rows are needed.
_HISTORY = re.compile(
    r".+_(job|job_env|job_script|step|event|suspend|resv|assoc_usage_\w+|wckey_usage_\w+|usage_\w+)_table|txn_table"
)
_NOT_TAKEN = re.compile(
    "slurmctldhost|controlmachine|controladdr|backup(controller|addr)|accountingstorage(host|port|backuphost|user|pass)"
    "|statesavelocation|slurmctld(pidfile|logfile|debug|syslogdebug|primaryo(n|ff)prog|addr)|debugflags"
    "|(prolog|epilog)slurmctld|(suspend|resume|resumefail|reboot|healthcheck)program|healthcheck(interval|nodestate)"
    "|suspend(time|timeout|excnodes|excparts|excstates|rate)|resume(timeout|rate)|mailprog|unkillablestepprogram"
    "|clifilterplugins|jobcomp.+|slurmschedlogfile|burstbuffertype|slurmdtimeout|plugstackconfig|include"
)
_STATE = re.compile(r"\sState=(?!FUTURE)\S+", re.IGNORECASE)
_QOS_LIMIT = re.compile(r"(?:job submit|job_submit) for user \S+: (.+)$", re.MULTILINE)
_HOW_MUCH = re.compile(r"(?<=time limit) \d+(?= exceeds)|(?<=request) \d+(?= (?:exceeds|is less))")


class Failed(Exception):  # noqa: N818 - it is the throwaway Slurm that failed
    """Why it could not be made."""


def _fail(why: str) -> NoReturn:
    raise Failed(why)


def pretended(conf: str, place: str, host: str) -> str:
    """The slurm.conf for a controller that is alone, whose nodes are none."""
    lines = []
    for line in conf.splitlines():
        key = line.split("=", 1)[0].strip().lower()
        if _NOT_TAKEN.fullmatch(key):
            continue
        if key == "nodename":
            line = _STATE.sub("", line) + ("" if "State=FUTURE" in line else " State=CLOUD")  # noqa: PLW2901
        lines.append(line)
    lines[:0] = [f"SlurmctldHost={host}({ADDRESS})"]
    lines += [
        f"AccountingStorageHost={ADDRESS}",
        f"StateSaveLocation={place}/state",
        f"SlurmctldPidFile={place}/slurmctld.pid",
        f"SlurmctldLogFile={place}/slurmctld.log",
        "SlurmctldDebug=debug2",
        "SlurmdTimeout=0",
        "SuspendProgram=/bin/true",
        "ResumeProgram=/bin/true",
        "SuspendTime=864000",
        f"PlugStackConfig={place}/plugstack.conf",
    ]
    return "\n".join(lines) + "\n"


def words_of(shape: dict[str, Any]) -> list[str]:
    """What a user would type to ask for such a job, to try whether it is accepted."""
    nodes = shape["nodes"]
    words = [f"--nodes={nodes}", f"--ntasks={max(shape['cpus'], nodes)}"]
    for option in ("partition", "account", "qos", "constraint"):
        words += [f"--{option}={shape[option]}"] if shape[option] else []
    if shape["minutes"] is not None:
        words.append(f"--time={shape['minutes']}")
    if shape["memory_mb"]:
        words.append(f"--mem={-(-shape['memory_mb'] // nodes)}M")
    uneven = [name for name, count in shape["gres"].items() if name.split(":")[0] == "gpu" and count % nodes]
    each = [f"{name}:{-(-count // nodes)}" for name, count in shape["gres"].items() if name not in uneven]
    words += [f"--gres={','.join(each)}"] if each else []
    words += [f"--gpus={','.join(_gpus(name, shape['gres'][name]) for name in uneven)}"] if uneven else []
    if shape["licenses"]:
        words.append("--licenses=" + ",".join(f"{name}:{n}" for name, n in shape["licenses"].items()))
    if shape["tasks"]:
        first, last = shape["tasks"] - 1, shape["highest_task"]
        words.append(f"--array={last}" if not first else f"--array=0-{first - 1},{last}")
    return words


def _gpus(name: str, count: int) -> str:
    kind = name.partition(":")[2]
    return f"{kind}:{count}" if kind else str(count)


def reason_in(said: str) -> str:
    """Why Slurm refuses, in its own words."""
    lines = []
    for line in said.splitlines():
        text = re.sub(r"^(sbatch|srun): (error: )?|^allocation failure: |^error: ", "", line.strip())
        text = re.sub(
            r"^(Batch job submission failed|Unable to allocate resources|allocation failure): ", "", text
        )
        if text:
            lines.append(text)
    return "; ".join(dict.fromkeys(lines))[-400:] or "refused without a word"


class World:
    """Database, slurmdbd and slurmctld below one directory."""

    def __init__(self, place: Path, database: str) -> None:
        self.place = place
        self.database = database
        self.host = os.uname().nodename.split(".")[0]
        self.socket = place / "mysqld.sock"
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LC_ALL": "C.UTF-8",
            "SLURM_CONF": f"{place}/slurm.conf",
        }

    def fill(self) -> None:
        """A MariaDB with what the site's database knows of users, accounts and QOS, and no job."""
        self.place.mkdir(mode=0o755)
        for name in ("data", "state"):
            (self.place / name).mkdir(mode=0o700)
        self._own()
        settings = (
            *("--no-defaults", f"--datadir={self.place}/data", "--user=slurm", "--innodb-log-file-size=8M"),
            *("--innodb-flush-log-at-trx-commit=0", "--skip-innodb-doublewrite"),
        )
        self._must(
            ["mariadb-install-db", *settings, "--skip-test-db", "--auth-root-authentication-method=normal"]
        )
        network = ("--skip-networking", "--skip-grant-tables", f"--socket={self.socket}")
        self._start("mariadbd", ["mariadbd", *settings, *network, f"--pid-file={self.place}/mysqld.pid"])
        self._wait("mariadbd", lambda: self._run([*self._client(), "--execute", "select 1"])[0] == 0)
        self._must([*self._client(), "--execute", f"create database `{self.database}`"])
        tables = self._must(
            ["mariadb", "--skip-column-names", "--execute", "show tables", self.database]
        ).split()
        rows = [name for name in tables if not _HISTORY.fullmatch(name)]
        dump = ["mariadb-dump", "--single-transaction"]
        text = self._must([*dump, "--no-data", self.database]) + self._must(
            [*dump, "--no-create-info", self.database, *rows]
        )
        self._must([*self._client(), self.database], text)
        # Other clusters of the database are not here.
        self._must(
            [*self._client(), "--execute", "update cluster_table set control_host = ''", self.database]
        )

    def keep_accounts(self) -> None:
        """Starts slurmdbd on it."""
        settings = [
            *("AuthType=auth/munge", f"DbdHost={self.host}", f"DbdAddr={ADDRESS}", "SlurmUser=slurm"),
            *("DebugLevel=info", "StorageType=accounting_storage/mysql", "StorageHost=localhost"),
            *("StorageUser=slurm", "StoragePass=none", f"StorageLoc={self.database}"),
            *(f"LogFile={self.place}/slurmdbd.log", f"PidFile={self.place}/slurmdbd.pid"),
        ]
        self._write("slurmdbd.conf", "\n".join([*settings, ""]), 0o600)
        self._start("slurmdbd", ["slurmdbd", "-D"], MYSQL_UNIX_PORT=str(self.socket))
        self._wait("slurmdbd", lambda: "started" in self._read("slurmdbd.log"))

    def configure(self, files: dict[str, str]) -> None:
        """Starts slurmctld with other files; the one before is stopped."""
        self._stop("slurmctld")
        for name in FILES:
            (self.place / name).unlink(missing_ok=True)
        for name, text in files.items():
            if name in FILES:
                self._write(
                    name, pretended(text, str(self.place), self.host) if name == "slurm.conf" else text
                )
        self._write("plugstack.conf", "")
        for path in (self.place / "state").iterdir():
            path.unlink() if path.is_file() else shutil.rmtree(path)
        (self.place / "slurmctld.log").unlink(missing_ok=True)
        self._start("slurmctld", ["slurmctld", "-D", "-c", "-f", f"{self.place}/slurm.conf"])

        def is_up() -> bool:
            return " is UP" in self._run(["scontrol", "ping"])[1]

        self._wait("slurmctld", is_up)

    def account(self, commands: Iterable[list[str]]) -> list[tuple[list[str], str]]:
        """Runs sacctmgr's commands; those that were refused, and why."""
        refused = []
        for command in commands:
            code, said = self._run(["sacctmgr", *command])
            if code and "Nothing" not in said and "already exist" not in said.lower():
                refused.append((command, said.strip()[-300:]))
        return refused

    def judge(self, shapes: list[dict[str, Any]], is_asked: Callable[[int], bool]) -> list[list[str]]:
        """For each shape whether it is ``accepted``, ``refused`` or ``waits``, and why.

        What goes over a limit that only keeps it from starting waits for ever: where every QOS has
        DenyOnLimit, Slurm says so at once. Which of the two it is, and which limit, takes two more tries; the
        places for which that ``is_asked`` get them, all others are ``refused``.
        """
        shown = self._must(["sacctmgr", "--noheader", "--parsable2", "show", "qos", "format=name,flags"])
        lenient = [line.split("|")[0] for line in shown.splitlines() if _DENY not in line]
        self._deny(lenient, "+=")
        verdicts = self._tried(shapes, range(len(shapes)))
        doubtful = [
            place
            for place, (verdict, _, is_limit) in enumerate(verdicts)
            if verdict == "refused" and is_limit and is_asked(place)
        ]
        for place in doubtful:
            verdicts[place][1] = self._limit(shapes[place]) or verdicts[place][1]
        self._deny(lenient, "-=")
        for place, said in zip(doubtful, self._tried(shapes, doubtful)):  # noqa: B905 - Python 3.9
            verdicts[place][0] = "waits" if said[0] == "accepted" else "refused"
        return [said[:2] for said in verdicts]

    def _deny(self, names: list[str], how: str) -> None:
        if names:
            which = f"name={','.join(names)}"
            self._must(["sacctmgr", "-i", "modify", "qos", "where", which, "set", f"flags{how}{_DENY}"])

    def _tried(self, shapes: list[dict[str, Any]], places: Iterable[int]) -> list[list[Any]]:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(lambda place: self._try(shapes[place]), places))

    def _try(self, shape: dict[str, Any]) -> list[Any]:
        """Verdict, reason, and whether it is one of a limit."""
        user = pwd.getpwnam(shape["user"])
        command = [shape["command"], "--test-only", *words_of(shape)]
        command += ["--wrap=true"] if shape["command"] == "sbatch" else ["true"]
        for _ in range(3):
            done = subprocess.run(
                command,
                # Not the home: a user's own defaults of sbatch are no part of the request.
                env={**self.environment, "USER": user.pw_name, "HOME": "/"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                cwd="/",
                user=user.pw_uid,
                group=user.pw_gid,
                extra_groups=os.getgrouplist(user.pw_name, user.pw_gid),
                timeout=120,
                check=False,
            )
            if done.returncode == 0:
                return ["accepted", "", False]
            if "Unable to contact" not in done.stdout and "timed out" not in done.stdout:
                return ["refused", reason_in(done.stdout), _POLICY in done.stdout]
        _fail(f"slurmctld does not answer: {done.stdout.strip()[-300:]}{self._tail('slurmctld')}")

    def _limit(self, shape: dict[str, Any]) -> str:
        """Which limit a shape is over: Slurm tells its log alone."""
        log = self.place / "slurmctld.log"
        before = log.stat().st_size
        self._try(shape)
        with log.open(encoding="utf-8", errors="replace") as file:
            file.seek(before)
            found = _QOS_LIMIT.findall(file.read())
        # How much it was stands in the request; without it, requests over one limit are together.
        return _HOW_MUCH.sub("", found[-1]) if found else ""

    def end(self) -> None:
        """Stops all."""
        for name in [*self._daemons][::-1]:
            self._stop(name)

    def _own(self) -> None:
        user = pwd.getpwnam("slurm")
        for path in (self.place, *self.place.iterdir()):
            os.chown(path, user.pw_uid, user.pw_gid)

    def _write(self, name: str, text: str, mode: int = 0o644) -> None:
        path = self.place / name
        path.touch(mode=mode)
        path.write_text(text, encoding="utf-8")
        shutil.chown(path, "slurm", "slurm")

    def _read(self, name: str) -> str:
        path = self.place / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def _client(self) -> list[str]:
        return ["mariadb", "--no-defaults", "--skip-column-names", f"--socket={self.socket}"]

    def _start(self, name: str, command: list[str], **more: str) -> None:
        with (self.place / f"{name}.out").open("ab") as out:
            self._daemons[name] = subprocess.Popen(
                command,
                env={**self.environment, **more},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd="/",
            )

    def _stop(self, name: str) -> None:
        daemon = self._daemons.pop(name, None)
        if daemon:
            # It has nothing to save.
            daemon.kill()
            daemon.wait()

    def _wait(self, name: str, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not is_so():
            if self._daemons[name].poll() is not None:
                _fail(f"{name} ended{self._tail(name)}")
            if time.monotonic() > deadline:
                _fail(f"{name} is not ready after {_PATIENCE} s{self._tail(name)}")
            time.sleep(0.1)

    def _tail(self, name: str) -> str:
        text = self._read(f"{name}.log") + self._read(f"{name}.out")
        said = re.findall(r"(?:fatal|error|ERROR)\b.*", text)[-3:] or text.splitlines()[-3:]
        return f": {' | '.join(said)[-600:]}" if said else ""

    def _run(self, command: list[str], text: str | None = None) -> tuple[int, str]:
        done = subprocess.run(
            ["timeout", "120", *command],
            env=self.environment,
            input=text or "",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="surrogateescape",
            cwd="/",
            check=False,
        )
        return done.returncode, done.stdout

    def _must(self, command: list[str], text: str | None = None) -> str:
        code, said = self._run(command, text)
        if code:
            _fail(f"{' '.join(command[:3])}: {said.strip()[-400:]}")
        return said


def judge(argument: dict[str, Any]) -> dict[str, Any]:
    """Verdicts on the shapes by the configuration that is there, and by another one."""
    _end_with_the_asker()
    began = time.monotonic()
    subprocess.run(["ip", "address", "add", f"{ADDRESS}/32", "dev", "lo"], check=False)
    world = World(Path("/mnt/deploy-replay"), argument["database"])
    try:
        old, new = _verdicts(world, argument)
    except Failed as problem:
        return {"trouble": str(problem)}
    finally:
        world.end()
    return {"old": old, "new": new, "seconds": round(time.monotonic() - began, 1)}


def _verdicts(world: World, argument: dict[str, Any]) -> tuple[list[list[str]], list[list[str]]]:
    shapes, directory = argument["shapes"], Path("/etc/slurm")
    there = {
        name: (directory / name).read_text(encoding="utf-8") for name in FILES if (directory / name).is_file()
    }
    world.fill()
    world.keep_accounts()
    world.configure(there)
    old = world.judge(shapes, lambda _: False)
    refused = world.account(argument["commands"])
    world.configure(argument["files"])
    # Limits on resources that only the new slurmctld makes known, and what needs another command.
    for _ in range(2):
        refused = world.account([command for command, _ in refused])
    if refused:
        _fail("accounting does not take what is declared: " + "; ".join(why for _, why in refused))
    return old, world.judge(shapes, lambda place: old[place][0] == "accepted")


def _end_with_the_asker() -> None:
    """Whoever started this keeps its standard input open. Its unit ends with this process, and all in it."""

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            pass
        os._exit(_ENDS)

    threading.Thread(target=watch, daemon=True).start()
