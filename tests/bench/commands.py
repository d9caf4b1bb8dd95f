"""Commands, timed; one that does not work ends the benchmark with what it said."""

import resource
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_LONGEST_SECONDS = 1800.0
_LAST_CHARACTERS = 3000


class BenchError(Exception):
    """Something that is measured did not work, so there is no figure."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what}: {reason}")


@dataclass(frozen=True)
class Finished:
    """What a command said, its seconds on the clock, and those of CPU, with all of its children."""

    output: bytes
    seconds: float
    cpu: float

    @property
    def text(self) -> str:
        return self.output.decode(errors="replace")


def run(
    command: list[str],
    *,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    data: bytes = b"",
) -> Finished:
    """Run a command to its end, with ``data`` as its input."""
    started, used = time.monotonic(), _cpu_of_children()
    try:
        done = subprocess.run(
            command,
            input=data,
            capture_output=True,
            check=False,
            cwd=directory,
            env=environment,
            timeout=_LONGEST_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise BenchError(_shown(command), f"still runs after {_LONGEST_SECONDS:.0f} s") from None
    seconds, cpu = time.monotonic() - started, _cpu_of_children() - used
    if done.returncode != 0:
        said = (done.stdout + b"\n" + done.stderr).decode(errors="replace").strip()
        raise BenchError(_shown(command), f"exit code {done.returncode}\n{said[-_LAST_CHARACTERS:]}")
    return Finished(done.stdout, seconds, cpu)


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _shown(command: list[str]) -> str:
    return " ".join(command)[:300]
