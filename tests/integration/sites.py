"""A site of hosts that are all this machine, and what to do with it."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from deploy.in_memory import place_for_secrets
from deploy.judge.summary import Summary, summarize
from deploy.run.events import Event, HostResult
from deploy.run.execute import Execution, RunRequest, execute
from deploy.run.journal import Journal, RecordedRun, last_run
from deploy.run.settings import Settings, ansible_environment
from tests.integration.driver import HOSTS

_INVENTORY = "[all:vars]\nansible_connection=local\nansible_python_interpreter=/usr/bin/python3\n[all]\n"
_MARK = "DEPLOY_TEST_MARK"
Found = TypeVar("Found")


@dataclass
class LocalSite:
    """An inventory of local hosts in a directory of its own; every process of its runs carries its mark."""

    directory: Path
    settings: Settings = field(default_factory=lambda: Settings(hosts=len(HOSTS)))

    def __post_init__(self) -> None:
        self.inventory = self.directory / "inventory.ini"
        self.inventory.write_text(_INVENTORY + "\n".join(HOSTS) + "\n")
        # Short: it holds sockets.
        self.scratch = Path(tempfile.mkdtemp(prefix="t-", dir=place_for_secrets()))
        self.playbook = self.directory / "playbook.yml"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of this site's runs."""
        return {_MARK: str(self.directory), "TMPDIR": str(self.scratch), "XDG_RUNTIME_DIR": str(self.scratch)}

    def write(self, tasks: str, *, play: str = "A phase") -> None:
        """Write a playbook with these tasks (YAML, not indented)."""
        indented = "".join(f"    {line}\n" for line in tasks.strip("\n").splitlines())
        self.playbook.write_text(
            f"- name: {play}\n  hosts: all\n  gather_facts: false\n  tasks:\n{indented}", encoding="utf-8"
        )

    def run(self, *arguments: str, variable_files: tuple[Path, ...] = ()) -> "Finished":
        """Run the playbook here, journalled."""
        journal = Journal.create(self.directory, {"hosts": list(HOSTS), "arguments": ["test"]})
        events: list[Event] = []

        def on_event(event: Event) -> None:
            events.append(event)
            journal.append(event)

        environment = ansible_environment(self.settings) | self.environment
        request = RunRequest(self.playbook, (self.inventory,), variable_files, arguments, environment)
        execution = execute(request, on_event)
        journal.finish()
        return Finished(events, execution, summarize(events, HOSTS, started=journal.started), journal.path)

    @contextmanager
    def started(self) -> Iterator[subprocess.Popen[str]]:
        """Run the playbook in a process of its own, and leave nothing of it behind."""
        with self.start() as process:
            try:
                yield process
            finally:
                process.kill()
                for pid in self.processes():
                    with suppress(ProcessLookupError):  # it ends by itself, too: its starter is gone
                        os.kill(pid, signal.SIGKILL)

    def start(self) -> subprocess.Popen[str]:
        """Run the playbook in a process of its own."""
        root = Path(__file__).parents[2]
        command = [sys.executable, str(root / "tests/integration/driver.py"), str(self.playbook)]
        command += [str(self.inventory), *["--openssh"] * (self.settings.mitogen is False)]
        environment = os.environ | self.environment | {"PYTHONPATH": str(root)}
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    def processes(self) -> list[int]:
        """Living processes that carry the mark of this site, save this test's own."""
        mark = f"{_MARK}={self.directory}".encode()
        return [pid for pid in _pids() if pid != os.getpid() and mark in _environ(pid).split(b"\0")]

    def recorded(self) -> RecordedRun:
        """The newest run in the journal."""
        run = last_run(self.directory)
        assert run
        return run


@dataclass(frozen=True)
class Finished:
    """A run and what it came to."""

    events: list[Event]
    execution: Execution
    summary: Summary
    journal: Path

    def results(self, host: str = "node1") -> list[HostResult]:
        """The results of a host, in order."""
        return [event for event in self.events if isinstance(event, HostResult) and event.host == host]


def eventually(look: Callable[[], Found], seconds: float = 30.0) -> Found:
    """What ``look`` finds, as soon as it finds something."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.05)
    message = f"nothing found within {seconds} seconds"
    raise AssertionError(message)


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _environ(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""
