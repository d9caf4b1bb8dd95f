"""A stream of short jobs from a login node, by which is known for how long nothing could be submitted."""

import json
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from deploy.run.sent_program import program, sources
from deploy.run.ssh import Login, NotByPlainSshError, command
from deploy.site.inventory import Host

_MARK = "deploy:"
_READ = "import sys; exec(sys.stdin.readline().encode().decode('unicode_escape'))"
_SECONDS_TO_END = 150


@dataclass(frozen=True)
class Attempt:
    """One submission: when it began and how long it took, in seconds; the job's id, empty where it failed."""

    at: float
    seconds: float
    job: str


@dataclass
class Submissions:
    """Those of one upgrade; ``trouble`` says why there are none."""

    attempts: list[Attempt] = field(default_factory=list)
    trouble: str = ""

    @property
    def jobs(self) -> list[str]:
        """The jobs that were taken."""
        return [attempt.job for attempt in self.attempts if attempt.job]

    @property
    def longest_silence(self) -> float:
        """The longest time in seconds in which no submission was taken."""
        return longest_silence(self.attempts)


def longest_silence(attempts: Sequence[Attempt]) -> float:
    """The longest time from a failed attempt, or a slow one, to the end of the next that was taken.

    0 where every one was taken within a second.
    """
    longest, since = 0.0, None
    for attempt in attempts:
        begin = attempt.at if since is None else since
        took = attempt.at + attempt.seconds - begin
        if not attempt.job:
            since = begin
            longest = max(longest, took)
        else:
            longest = max(longest, took if since is not None or attempt.seconds > 1 else 0.0)
            since = None
    return longest


@contextmanager
def submissions(host: Host, login: Login, user: str | None) -> Iterator[Submissions]:
    """Submits from a host while it lasts; where that cannot be, it says why and goes on without."""
    made = Submissions()
    if user is None:
        made.trouble = "the site has no validation user"
        yield made
        return
    try:
        words = command(host, login, ("-I", "-c", _READ))
    except NotByPlainSshError as problem:
        made.trouble = f"{host.name}: deploy reaches it by plain ssh only, and {problem}"
        yield made
        return
    process = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
        errors="replace",
        process_group=0,
    )
    with process:
        assert process.stdin  # noqa: S101 - for mypy
        text = program(sources("submission_stream"), "stream", {"user": user})
        with suppress(BrokenPipeError):
            process.stdin.write(text.encode("unicode_escape").decode() + "\n")
            process.stdin.flush()
        reader = threading.Thread(target=_read, args=(process, made), daemon=True)
        reader.start()
        try:
            yield made
        finally:
            with suppress(BrokenPipeError):
                process.stdin.close()
            reader.join(_SECONDS_TO_END)
            if reader.is_alive():
                process.kill()
    if not made.attempts:
        made.trouble = made.trouble or f"{host.name}: no submission could be tried"


def _read(process: subprocess.Popen[str], made: Submissions) -> None:
    assert process.stdout  # noqa: S101 - for mypy
    for line in process.stdout:
        if line.startswith(_MARK):
            answer = json.loads(line.removeprefix(_MARK))
            made.attempts.append(Attempt(answer["at"], answer["seconds"], answer["job"]))
