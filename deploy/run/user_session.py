"""Has users' commands typed on a login node, over ssh as the inventory says it is reached."""

import json
import secrets
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from deploy.errors import DeployError, ExitCode, error
from deploy.run.cancellation import Cancellation
from deploy.run.sent_program import program, sources
from deploy.run.ssh import Login, NotByPlainSshError, command
from deploy.site.inventory import Host

_MARK = "deploy:"
_AT_ONCE = 6
_SECONDS_TO_LEAVE = 30
_SILENT_SECONDS = 60
_BETWEEN_LOOKS = 0.2
_NO_CONNECTION = 255
"""ssh(1): its exit code when it has no connection; else that of the command."""


@dataclass(frozen=True)
class Session:
    """A login node on which commands are typed; ``seconds`` is the most that one may take, and its jobs."""

    host: Host
    login: Login
    seconds: float = 180
    at_once: int = _AT_ONCE

    def type_commands(
        self,
        commands: Iterable[Mapping[str, Any]],
        on_answer: Callable[[dict[str, Any]], None],
        cancellation: Cancellation,
    ) -> None:
        """Types commands, several at a time, and hands on each answer when it comes.

        First what the host is, under ``facts``; then an answer per command, as user_commands.py says. What
        was made there is taken away, also when this is cancelled. Raises DeployError ``commands-not-typed``.
        """
        name = f"deploy-try-{secrets.token_hex(4)}"
        listed = list(commands)
        task = {"session": name, "commands": listed, "seconds": self.seconds, "at_once": self.at_once}
        is_whole = False
        try:
            self._converse("try", task, on_answer, cancellation)
            is_whole = True
        finally:
            if not is_whole or cancellation.is_asked:
                users = sorted({typed["user"] for typed in listed})
                self._leave({"session": name, "users": users})

    def make_image(self) -> str:
        """A small container image, as squashfs in base64, made on this host."""
        answers: list[dict[str, Any]] = []
        self._converse("image", {}, answers.append, Cancellation())
        return str(answers[0]["image"])

    def _leave(self, task: Mapping[str, Any]) -> None:
        """Takes away what was made there, over a connection of its own."""
        with suppress(
            NotByPlainSshError, OSError, subprocess.TimeoutExpired
        ):  # it takes leave by itself, too
            subprocess.run(
                command(self.host, self.login),
                input=program(sources("user_commands"), "leave", task),
                text=True,
                capture_output=True,
                timeout=_SECONDS_TO_LEAVE,
                check=False,
            )

    def _converse(
        self,
        verb: str,
        task: Mapping[str, Any],
        on_answer: Callable[[dict[str, Any]], None],
        cancellation: Cancellation,
    ) -> None:
        with self._connect() as process:
            assert process.stdin  # noqa: S101 - for mypy
            assert process.stdout  # noqa: S101 - for mypy
            assert process.stderr  # noqa: S101 - for mypy
            try:
                process.stdin.write(program(sources("user_commands"), verb, task))
                process.stdin.close()
            except BrokenPipeError:
                pass  # ssh says why below
            watch = _Watch(process, cancellation)
            threading.Thread(target=watch.keep, daemon=True).start()
            fault = ""
            for line in process.stdout:
                watch.heard = time.monotonic()
                if line.startswith(_MARK) and not cancellation.is_asked:
                    answer = json.loads(line.removeprefix(_MARK))
                    fault = fault or answer.get("fault", "")
                    if "fault" not in answer:
                        on_answer(answer)
            said = process.stderr.read().strip().splitlines()
            process.wait()
        if cancellation.is_asked:
            return
        if fault:
            raise _not_typed(self.host, fault, ExitCode.FAILED)
        if watch.is_lost:
            why = f"it gave no sign of life for {_SILENT_SECONDS} s"
            raise _not_typed(self.host, why, ExitCode.UNREACHABLE)
        if process.returncode:
            raise _ended(self.host, process.returncode, said)

    def _connect(self) -> subprocess.Popen[str]:
        try:
            words = command(self.host, self.login)
        except NotByPlainSshError as problem:
            raise _not_typed(self.host, f"deploy reaches it by plain ssh only, and {problem}") from None
        try:
            return subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                # Ctrl-C is for us; the other side is then told to take its things along.
                process_group=0,
            )
        except OSError as problem:
            raise _not_typed(self.host, f"{words[0]}: {problem.strerror}") from None


class _Watch:
    """Ends ssh when somebody wants to stop, or the host is lost: it tells each second that it is there."""

    def __init__(self, process: subprocess.Popen[str], cancellation: Cancellation) -> None:
        self._process = process
        self._cancellation = cancellation
        self.heard = time.monotonic()
        self.is_lost = False

    def keep(self) -> None:
        """Watches until ssh has ended."""
        while self._process.poll() is None:
            self.is_lost = time.monotonic() - self.heard > _SILENT_SECONDS
            if self.is_lost or self._cancellation.is_asked:
                self._process.terminate()
                return
            time.sleep(_BETWEEN_LOOKS)


def _ended(host: Host, code: int, said: list[str]) -> DeployError:
    why = said[-1] if said else f"exit code {code}"
    return _not_typed(host, why, ExitCode.UNREACHABLE if code == _NO_CONNECTION else ExitCode.FAILED)


def _not_typed(host: Host, why: str, exit_code: ExitCode = ExitCode.BAD_INPUT) -> DeployError:
    return error(
        "commands-not-typed",
        f"users' commands could not be typed here: {why}",
        where=host.name,
        hint="see that the host is reached and has Slurm's commands: deploy status",
        exit_code=exit_code,
    )
