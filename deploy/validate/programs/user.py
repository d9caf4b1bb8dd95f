"""The jobs of a validation, started on a login node by the validation user in its login shell.

What it does there a user could do: srun, sbatch, sacct, ssh. Everything carries one name, the marker, by
which it is found again. Whatever happens, the jobs are cancelled and the files removed at the end; when
whoever started it goes away, that is the end. ``validate`` is called with the plan and returns::

    {"probes": {node: run}, "single": {node: [run, run]}, "all_gpus": {node: run}, "memory": {node: run},
     "together": run, "array": job id, "limit": {...}, "ssh": {node: {...}}, "mpi": run,
     "container": {node: run}, "accounting": [row], "shared": {node: text}, "trouble": [text]}

and with that what performance.py returns. A run is ``{"code", "seconds", "said", "answers"}``: an exit code
(null after a time-out), what else was printed, and the answers of the probe.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_MARK = "deploy-probe:"
_PREFIX = "deploy-validate-"
_AT_ONCE = 16
_MEMORY_MB = 100
_WAIT_FOR_RESOURCES = 20
_TO_CLEAR_UP = 40  # Slurm gives a cancelled job 30 s before it kills it: slurm.conf(5), KillWait
_STEP_SECONDS = 60
_KEPT = 2000
_MEASURED = ("nccl", "nvbandwidth", "dcgm", "training", "burn-in")
_LOGINS = 4
_NO_JOB = "no active jobs"
_NO_PROGRAM = 127
AT_WORK = "another validation is at work on this host"
_ROW = "JobID,JobName,User,Account,Partition,QOS,State,ExitCode,NodeList,AllocTRES,ElapsedRaw,Start,End"
_ACTIVE = {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "REQUEUED", "RESIZING", "SUSPENDED"}


class Validation:
    """One validation: its plan, its directory, and what it started."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.marker = plan["marker"]
        self.directory = Path.home() / f".{self.marker}"
        self.nonce = plan["nonce"]
        self.trouble: list[str] = []
        self.is_over = threading.Event()
        self._running: set[subprocess.Popen[str]] = set()

    def run(self, argv: list[str], *, seconds: float, text: str | None = None) -> dict[str, Any]:
        """Runs a program to its end, or to the end of its time."""
        began = time.monotonic()
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE if text is not None else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                cwd="/tmp",
            )
        except FileNotFoundError as problem:
            said = f"{argv[0]}: {problem.strerror}"
            return {"code": _NO_PROGRAM, "seconds": 0.0, "said": said, "answers": []}
        self._running.add(process)
        if self.is_over.is_set():
            process.terminate()
        try:
            out, _ = process.communicate(text, timeout=seconds)
            code: int | None = process.returncode
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                out, _ = process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                out, _ = process.communicate()
            code = None
        finally:
            self._running.discard(process)
        said, answers = answers_in(out)
        return {"code": code, "seconds": time.monotonic() - began, "said": said, "answers": answers}

    def job_options(self) -> list[str]:
        """What every job has in common."""
        partition, reservation = self.plan["partition"], self.plan.get("reservation")
        return [
            *(f"--partition={partition}", f"--account={partition}", f"--job-name={self.marker}"),
            *([f"--reservation={reservation}"] if reservation else []),
            *("--chdir=/tmp", "--export=ALL", "--time=5"),
        ]

    def srun(
        self, *options: str, command: list[str], memory: int = _MEMORY_MB, seconds: float = _STEP_SECONDS
    ) -> dict[str, Any]:
        """Runs a command as a job of its own."""
        given = [*self.job_options(), f"--mem={memory}M", f"--immediate={_WAIT_FOR_RESOURCES}", *options]
        done = self.run(["srun", *given, *command], seconds=seconds)
        return {**done, "said": done["said"][-_KEPT:]}

    def sbatch(self, *options: str, script: str) -> tuple[str, str]:
        """Submits a job; its id, or an empty one and the reason."""
        given = [*self.job_options(), f"--mem={_MEMORY_MB}M", "--output=/dev/null", "--parsable", *options]
        done = self.run(["sbatch", *given], seconds=30, text=f"#!/bin/sh\n{script}\n")
        lines = done["said"].strip().splitlines()
        if done["code"] == 0 and lines:
            return lines[-1].split(";")[0], ""
        return "", done["said"].strip() or f"sbatch ended with {done['code']}"

    def probe(self, **given: str | float | bool) -> list[str]:
        """The command of a probe."""
        return ["python3", "-I", "-c", self.plan["probe"], json.dumps(given)]

    def states(self, job: str) -> list[str]:
        """The states of a job, or of all of an array's, as accounting has them."""
        argv = ["sacct", "--noheader", "--parsable2", "--allocations", "--format=State", f"--jobs={job}"]
        return [line.split()[0] for line in self.run(argv, seconds=20)["said"].splitlines() if line.strip()]

    def stop(self) -> None:
        """Ends what runs: the programs here, and the jobs."""
        self.is_over.set()
        for process in list(self._running):
            process.terminate()

    def clean_up(self) -> None:
        """Cancels what is left of this and of earlier validations, and removes the files."""
        user = pwd.getpwuid(os.getuid()).pw_name
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(["scancel", f"--user={user}", "--quiet"], check=False, timeout=30)
        for directory in Path.home().glob(f".{_PREFIX}*"):
            shutil.rmtree(directory, ignore_errors=True)

    def ask_slurm(self) -> None:
        """Ends the program at once when no job could run: every single one would take its time to fail."""
        try:
            done = self.run(["sinfo", "--noheader", "--format=%P"], seconds=30)
        except OSError as problem:
            sys.exit(f"{problem.filename}: {problem.strerror}")
        if done["code"] != 0:
            lines = done["said"].strip().splitlines()
            sys.exit(lines[-1] if lines else f"sinfo ended with {done['code']}")

    def each(self, nodes: list[str], what: Callable[[str], Any]) -> dict[str, Any]:
        """Does something for many nodes, some at a time."""
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            done = list(pool.map(lambda node: None if self.is_over.is_set() else what(node), nodes))
        return {node: result for node, result in zip(nodes, done) if result is not None}  # noqa: B905 - Python 3.9

    def answer(self) -> dict[str, Any]:
        """Everything, in an order in which little waits for anything else."""
        self.directory.mkdir(mode=0o700)
        (self.directory / "nonce").write_text(self.nonce, encoding="utf-8")
        with ThreadPoolExecutor(max_workers=1) as background:
            try:
                return self.answers(background)
            except BaseException:
                self.stop()
                raise

    def answers(self, background: ThreadPoolExecutor) -> dict[str, Any]:
        """By kind of job, what came of it; the one that takes long goes on in the background."""
        plan = self.plan
        answer: dict[str, Any] = {}
        beside = self.has("limit") and self.have_room()
        limit = background.submit(self.time_limit) if beside else None
        if self.has("array"):
            answer["array"], why = self.sbatch("--array=0-3", script="true")
            self.trouble += [f"sbatch: {why}"] * bool(why)
        answer["probes"] = self.each(plan["nodes"], self.look_around)
        fit = [node for node, run in answer["probes"].items() if run["code"] == 0]
        gpus = [node for node in plan["gpus"] if node in fit]
        answer["shared"] = self.written_by(fit)
        if self.has("together") and fit:
            answer["together"] = self.together(fit)
        if self.has("memory"):
            answer["memory"] = self.each(fit, self.take_too_much)
        if self.has("gpus"):
            answer["single"] = self.each(gpus, self.single_gpus)
            answer["all_gpus"] = self.each(gpus, self.all_gpus)
        if self.has("containers"):
            answer["container"] = self.containers([n for n in plan["container_nodes"] if n in fit])
        if limit or self.has("limit"):
            answer["limit"] = limit.result() if limit else self.time_limit()
        # Its ranks may take all CPUs of small nodes, so the one in the background has to be over.
        if self.has("mpi") and plan["has_mpi"] and fit:
            answer["mpi"] = self.mpi(fit)
        # Last: wherever one of the other jobs runs, a login is let in.
        if self.has("ssh"):
            answer["ssh"] = self.ssh([node for node in plan["ssh_nodes"] if node in fit])
        answer |= self.measurements(fit)
        answer["accounting"] = self.accounting()
        answer["trouble"] = self.trouble
        return answer

    def have_room(self) -> bool:
        """Whether each of the nodes can run another job beside one of a task."""
        partition = f"--partition={self.plan['partition']}"
        said = self.run(["sinfo", "--all", "--noheader", "--Node", "--format=%c", partition], seconds=20)
        return all(cpus.isdigit() and int(cpus) > 1 for cpus in said["said"].split())

    def measurements(self, nodes: list[str]) -> dict[str, Any]:
        """What programs/performance.py measures, where it is asked for."""
        if not any(self.has(kind) for kind in _MEASURED):
            return {}
        program: dict[str, Any] = {"__name__": "performance"}
        exec(compile(self.plan["measure"], "performance", "exec"), program)  # noqa: S102 - deploy's own
        return dict(program["measured"](self, nodes))

    def has(self, kind: str) -> bool:
        """Whether a kind of job is asked for, and nobody has asked to stop."""
        return kind in self.plan["kinds"] and not self.is_over.is_set()

    def look_around(self, node: str) -> dict[str, Any]:
        """One task on a node, alone."""
        given = {"marker": self.marker, "shared": str(self.directory), "works": True}
        return self.srun("--nodes=1", "--ntasks=1", f"--nodelist={node}", command=self.probe(**given))

    def written_by(self, nodes: list[str]) -> dict[str, str]:
        """What is read here of the file that each node wrote into the shared directory."""
        found = {}
        for node in nodes:
            try:
                found[node] = (self.directory / f"from-{node}").read_text(encoding="utf-8")
            except OSError as problem:
                found[node] = problem.strerror or str(problem)
        return found

    def together(self, nodes: list[str]) -> dict[str, Any]:
        """One job on all nodes at once."""
        # In a file: thousands of names are more than an argument may hold.
        listed = self.directory / "nodes"
        listed.write_text("".join(f"{node}\n" for node in nodes), encoding="utf-8")
        options = (f"--nodes={len(nodes)}", "--ntasks-per-node=1", f"--nodefile={listed}")
        return self.srun(*options, command=self.probe(), seconds=_STEP_SECONDS + len(nodes) / 10)

    def take_too_much(self, node: str) -> dict[str, Any]:
        """A task that takes three times the memory that it asked for."""
        eat = f"print(len(bytearray({3 * _MEMORY_MB} << 20)))"
        return self.srun("--ntasks=1", f"--nodelist={node}", command=["python3", "-I", "-c", eat])

    def single_gpus(self, node: str) -> list[dict[str, Any]]:
        """Two jobs with a GPU each, at once where the node has two."""
        count = min(2, self.plan["gpus"][node])

        def single(_: int) -> dict[str, Any]:
            options = ("--ntasks=1", f"--nodelist={node}", "--gres=gpu:1")
            return self.srun(*options, command=self.probe(hold=2))

        with ThreadPoolExecutor(max_workers=count) as pool:
            return list(pool.map(single, range(count)))

    def all_gpus(self, node: str) -> dict[str, Any]:
        """A job with all GPUs of a node."""
        options = ("--ntasks=1", f"--nodelist={node}", f"--gres=gpu:{self.plan['gpus'][node]}")
        return self.srun(*options, command=self.probe())

    def time_limit(self) -> dict[str, Any]:
        """A job that stays longer than it said, watched until it ends."""
        job, why = self.sbatch("--time=1", script="sleep 600")
        began = time.monotonic()
        ends = began + self.plan["limit_seconds"]
        states: list[str] = []
        while job and time.monotonic() < ends and not self.is_over.wait(3):
            states = self.states(job)
            if states and not _ACTIVE & {*states}:
                break
        return {"job": job, "why": why, "states": states, "seconds": time.monotonic() - began}

    def ssh(self, nodes: list[str]) -> dict[str, Any]:
        """Logins on nodes, without a job there and with one."""
        if not nodes:
            return {}
        place = Path.home() / ".ssh"
        is_new = not place.exists()
        place.mkdir(mode=0o700, exist_ok=True)
        authorized = place / "authorized_keys"
        before = authorized.read_text(encoding="utf-8") if authorized.exists() else None
        mode = authorized.stat().st_mode & 0o777 if before is not None else 0o600
        # A validation that was killed could not take its key back.
        own = [line for line in (before or "").splitlines() if f" {_PREFIX}" not in line]
        kept = "".join(f"{line}\n" for line in own)
        key = self.directory / "key"
        self.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", self.marker, "-f", str(key)], seconds=20
        )
        public = (self.directory / "key.pub").read_text(encoding="utf-8")
        authorized.write_text(kept + public, encoding="utf-8")
        authorized.chmod(0o600)
        try:
            return self.each(nodes, self.log_in)
        finally:
            if before is None:
                authorized.unlink()
            else:
                authorized.write_text(kept, encoding="utf-8")
                authorized.chmod(mode)
            if is_new:
                shutil.rmtree(place, ignore_errors=True)

    def log_in(self, node: str) -> dict[str, Any]:
        """A login on a node without a job, then one with a job."""
        options = [
            "BatchMode=yes",
            "StrictHostKeyChecking=accept-new",
            "ConnectTimeout=10",
            "IdentitiesOnly=yes",
        ]
        argv = [
            "ssh",
            "-i",
            str(self.directory / "key"),
            "-o",
            f"UserKnownHostsFile={self.directory}/known-{node}",
        ]
        argv += [word for option in options for word in ("-o", option)]
        argv += [node, "cat", "/proc/self/cgroup"]
        if not self.jobs_are_gone(f"--nodelist={node}"):
            return {
                "without": None,
                "job": "",
                "why": "earlier jobs of the validation are still there",
                "within": None,
            }
        without = self.login(argv, lambda done: done["code"] == 0 or _NO_JOB in done["said"])
        job, why = self.sbatch(f"--nodelist={node}", "--ntasks=1", script="sleep 120")
        deadline = time.monotonic() + _WAIT_FOR_RESOURCES
        state = ""
        while job and state != "RUNNING" and time.monotonic() < deadline and not self.is_over.wait(0.3):
            state = self.run(["squeue", "--noheader", "--format=%T", f"--jobs={job}"], seconds=20)[
                "said"
            ].strip()
        within = None
        if state == "RUNNING":
            # A job runs before its node knows of it; a step of it begins when that has made room for logins.
            self.run(["srun", f"--jobid={job}", "--overlap", "--ntasks=1", "--chdir=/", "true"], seconds=30)
            within = self.login(argv, lambda done: done["code"] == 0)
        if job:
            self.run(["scancel", job], seconds=20)
        return {"without": without, "job": job, "why": why or state, "within": within}

    def login(self, argv: list[str], is_plain: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """A node's plain answer to a login.

        A node that is still clearing up after a job refuses logins without saying why, those of the owner of
        the next job too: the module of PAM may have taken the old job for the one to put the login in.
        """
        for _ in range(_LOGINS):
            done = self.run(argv, seconds=30)
            if is_plain(done) or self.is_over.wait(2):
                break
        return done

    def jobs_are_gone(self, *where: str, seconds: float = _WAIT_FOR_RESOURCES) -> bool:
        """Whether the last of the own jobs goes within a while, those that complete too."""
        # --all: the partition is hidden, and so are its jobs.
        argv = ["squeue", "--all", "--noheader", "--format=%i", "--me", *where]
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.is_over.wait(0.3):
            done = self.run(argv, seconds=20)
            if done["code"] == 0 and not done["said"].strip():
                return True
        return False

    def mpi(self, nodes: list[str]) -> dict[str, Any]:
        """Two ranks on each of two nodes, or on one where there is only one."""
        chosen = nodes[:2]
        options = [f"--nodes={len(chosen)}", "--ntasks-per-node=2", f"--nodelist={','.join(chosen)}"]
        command = ["python3", "-I", "-c", self.plan["ranks"]]
        done = self.srun(*options, "--mpi=pmix", command=command, memory=4 * _MEMORY_MB)
        return {**done, "expected": 2 * len(chosen)}

    def containers(self, nodes: list[str]) -> dict[str, Any]:
        """On each node, what a container says that it is."""
        if not nodes:
            return {}
        image = self.directory / "image.sqsh"
        command = ["python3", "-I", "-c", self.plan["image"], str(self.directory), self.nonce]
        made = self.srun("--ntasks=1", f"--nodelist={nodes[0]}", command=command, memory=3 * _MEMORY_MB)
        if made["code"] != 0 or not image.exists():
            self.trouble.append(
                f"the image of the test container could not be made: {made['said'].strip()[-300:]}"
            )
            return {}

        def start(node: str) -> dict[str, Any]:
            options = ("--ntasks=1", f"--nodelist={node}", f"--container-image={image}")
            return self.srun(*options, command=["cat", "/etc/os-release"], memory=5 * _MEMORY_MB)

        return self.each(nodes, start)

    def accounting(self) -> list[dict[str, str]]:
        """The rows of all jobs, once none of them is still open in the books."""
        argv = [
            "sacct",
            "--noheader",
            "--parsable2",
            "--allocations",
            f"--name={self.marker}",
            f"--format={_ROW}",
        ]
        rows: list[dict[str, str]] = []
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not self.is_over.is_set():
            lines = [
                line.split("|") for line in self.run(argv, seconds=20)["said"].splitlines() if "|" in line
            ]
            rows = [dict(zip(_ROW.split(","), line)) for line in lines]  # noqa: B905 - Python 3.9
            if rows and not any(row["State"].split()[0] in _ACTIVE for row in rows):
                break
            self.is_over.wait(1)
        return rows


def answers_in(out: str) -> tuple[str, list[dict[str, Any]]]:
    """What a program printed, and the answers of probes in it, which may share a line with srun's words."""
    said, answers = [], []
    for line in out.splitlines():
        before, mark, rest = line.partition(_MARK)
        try:
            answer, end = json.JSONDecoder().raw_decode(rest) if mark else ({}, 0)
        except ValueError:
            mark, answer, end = "", {}, 0
            before = line
        if mark:
            answers.append(answer)
        words = (before + rest[end:] if mark else before).strip()
        if words or not mark:
            said.append(words)
    return "\n".join(said), answers


def alone() -> socket.socket:
    """Held for as long as this runs: two validations at once would cancel each other's jobs."""
    held = socket.socket(socket.AF_UNIX)
    try:
        # An abstract name: the kernel forgets it with the process.
        home = Path.home().stat()
        held.bind(f"\0{_PREFIX}{os.getuid()}-{home.st_dev}-{home.st_ino}")
    except OSError:
        held.close()
        sys.exit(AT_WORK)
    return held


def validate(plan: dict[str, Any]) -> dict[str, Any]:
    """Validate, and leave nothing behind."""
    validation = Validation(plan)

    def end_with_the_caller() -> None:
        # Not through sys.stdin: its lock would be held when the interpreter ends.
        while os.read(0, 1 << 16):
            pass
        validation.stop()

    def end(*_: object) -> None:
        validation.stop()

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, end)
    threading.Thread(target=end_with_the_caller, daemon=True).start()
    with alone():
        try:
            validation.clean_up()
            validation.ask_slurm()
            answer = validation.answer()
        finally:
            validation.clean_up()
        # What comes after a validation, a user's sinfo say, finds the nodes as they were.
        validation.jobs_are_gone(seconds=_TO_CLEAR_UP)
    return answer
