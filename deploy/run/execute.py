"""One playbook, run by ansible-runner in a directory of its own. The only importer of ansible_runner."""

import json
import os
import queue
import signal
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from deploy.errors import ExitCode, error
from deploy.place import private_place
from deploy.run import reaper
from deploy.run.cancellation import Cancellation
from deploy.run.events import Ending, Event, Level, Notice, RawEvent, RunEnded, Stats, parse
from deploy.run.exit_status import CAME_TO_ITS_END
from deploy.run.patches import replace

_POLL_SECONDS = 0.2
_KILL_POLL_SECONDS = 0.02
_ANSIBLE_PLAYBOOK = str(Path(sys.executable).parent / "ansible-playbook")
_PLAYBOOK_SERVER = Path(__file__).with_name("playbook_server.py")
_CALLBACKS = Path(__file__).parent / "callback"
_IDENT = "run"
_INTERRUPTED = 130
_WISHES = {"suppress_output_file": True, "pexpect_timeout": 1}
"""Of ansible-runner: no copy of the output in a file, and a look at the process every second."""
_UNKNOWN_WISH = "{} has no {!r}: the run goes on without it, and is told about late or takes more room"
_STOPPING = "stopping: Ansible is asked to end; interrupt again to kill it at once"
# The path of mitogen's socket, 27 characters longer, must stay below the kernel's limit of 108.
_LONGEST_SOCKET_DIRECTORY = 75


@dataclass(frozen=True)
class RunRequest:
    """A playbook and everything Ansible needs for it; every argument stays one argument.

    The passwords are contents, not paths: they go to Ansible in files that are removed with the run.
    """

    playbook: Path
    inventories: tuple[Path, ...]
    variable_files: tuple[Path, ...] = ()
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    connection_password: str | None = field(default=None, repr=False)
    become_password: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Execution:
    """How a run came to its end."""

    rc: int
    ending: Ending

    @property
    def came_to_its_end(self) -> bool:
        """Whether Ansible did, whatever happened on hosts."""
        return self.rc in CAME_TO_ITS_END and self.ending is Ending.FINISHED


def execute(
    request: RunRequest,
    on_event: Callable[[Event], None],
    cancellation: Cancellation | None = None,
    early: "EarlyStart | None" = None,
) -> Execution:
    """Run a playbook; ``on_event`` is called in the caller's thread for every event, RunEnded last.

    ``early`` is an Ansible that was started beforehand; it is used where it fits the request and still waits.
    What ``on_event`` raises stops the run and is raised here. Raises DeployError ``runner-failed`` when
    ansible-runner itself breaks.
    """
    cancellation = cancellation or Cancellation()
    if cancellation.is_asked:
        return _end(Execution(_INTERRUPTED, Ending.CANCELLED), on_event)
    is_recapped = False
    with ExitStack() as stack:
        run = early.take(request) if early else None
        if run is None:
            run = _Run(request.environment, stack.enter_context(private_place("run")))
            run.start(ansible_playbook(request, run.scratch))
        try:
            for event in run.events(cancellation):
                is_recapped |= isinstance(event, Stats)
                on_event(event)
        except BaseException:
            run.stop(cancellation)
            raise
    if run.failure:
        raise error(
            "runner-failed",
            f"{_runner()} broke: {type(run.failure).__name__}: {run.failure}",
            hint="this is a fault of deploy or of its installation: install it anew with what it depends on,"
            " then report it",
            exit_code=ExitCode.INTERNAL,
        ) from run.failure
    # Asked to stop after the last task, it has nothing left undone.
    ending = Ending.CANCELLED if cancellation.is_asked and not is_recapped else Ending.FINISHED
    # What Ansible came to the end of, it sums up. Where it broke, its exit status may say 0 all the same.
    rc = run.rc or int(not is_recapped)
    return _end(Execution(rc, ending), on_event)


class EarlyStart:
    """Ansible, started while it is not known yet what to run: that hides most of the time its start takes.

    It serves one run after the other; each finds the imports and the connections of the one before. A context
    manager; whoever leaves it ends what it started. Started at once, or with the first run; where it is not
    ``is_served``, never: then each run is an ansible-playbook of its own.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        inventory: Path,
        *,
        at_once: bool = True,
        is_served: bool = True,
    ) -> None:
        self._environment = dict(environment)
        self._inventory = inventory
        self._is_served = is_served
        self._is_at_once = at_once and is_served
        self._stack = ExitStack()
        self._run: _Run | None = None
        self._gate = -1

    def __enter__(self) -> Self:
        if self._is_at_once:
            self._run = self._start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._run:
            self._run.kill()
            os.close(self._gate)
        self._stack.close()

    def dismiss(self) -> None:
        """Nothing more will be run: it may end while its starter has other things to do."""
        if self._run:
            self._run.tell_to_end()

    def take(self, request: RunRequest) -> "_Run | None":
        """The run, set going with a request; None when it has another environment or came to no good end."""
        if not self._is_served or request.environment != self._environment:
            return None
        run = self._run = self._run or self._start()
        if not run.is_waiting:
            return None
        order = {"command": ansible_playbook(request, run.scratch), "mark": run.next_mark()}
        os.write(self._gate, json.dumps(order).encode() + b"\n")
        return run

    def _start(self) -> "_Run":
        scratch = self._stack.enter_context(private_place("run"))
        gate = scratch / "gate"
        os.mkfifo(gate, mode=0o600)
        # Open for both, so that neither side waits for the other to come.
        self._gate = os.open(gate, os.O_RDWR | os.O_CLOEXEC)
        run = _Run(self._environment, scratch)
        # The names are for whoever looks at the list of processes.
        shown = [Path(_ANSIBLE_PLAYBOOK).name, "--inventory", str(self._inventory)]
        run.start([sys.executable, "-P", str(_PLAYBOOK_SERVER), str(gate), *shown])
        return run


def _end(execution: Execution, on_event: Callable[[Event], None]) -> Execution:
    on_event(RunEnded(time.time(), execution.rc, execution.ending))
    return execution


def _is_empty(event: Event) -> bool:
    return isinstance(event, RawEvent) and not event.text


def _is_complaint(event: Event) -> bool:
    """Whether it is a text of Ansible's that no task says."""
    return isinstance(event, RawEvent) or (isinstance(event, Notice) and event.level is Level.ERROR)


class _Run:
    """A run in progress: ansible-runner in its thread, which does nothing but enqueue."""

    def __init__(self, environment: Mapping[str, str], scratch: Path) -> None:
        self.scratch = scratch
        self._environment = environment
        self._command: list[str] = []
        self._pid_file = scratch / "reaper.pid"
        self._queue: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="ansible-runner")
        self._told: set[signal.Signals] = set()
        self._mark = ""
        self.failure: BaseException | None = None
        self.rc = 1

    @property
    def is_waiting(self) -> bool:
        """Whether it waits at its gate, as far as is known here."""
        return self._thread.is_alive() and not self._told

    def next_mark(self) -> str:
        """The uuid of the event that will say that what it is told next is done."""
        self._mark = str(uuid.uuid4())
        return self._mark

    def start(self, command: list[str]) -> None:
        """Begin, below a reaper."""
        guard = [sys.executable, "-I", "-S", str(Path(reaper.__file__))]
        self._command = [*guard, str(os.getpid()), str(self._pid_file), str(self.scratch), *command]
        self._thread.start()

    def events(self, cancellation: Cancellation) -> Iterator[Event]:
        """The events as they come, until the run is over."""
        is_stopping = False
        while True:
            if cancellation.is_asked:
                if not is_stopping:
                    is_stopping = True
                    yield Notice(time.time(), Level.WARNING, _STOPPING)
                self._tell(signal.SIGTERM if cancellation.is_at_once else signal.SIGINT)
            try:
                raw = self._queue.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                continue
            if raw is None:
                self._thread.join()
                break
            if self._mark and raw.get("uuid") == self._mark:
                self.rc = int(raw["rc"])
                break
            event = parse(raw)
            # What it complains of when it is interrupted, with a traceback at times, is the interruption.
            if not (_is_empty(event) or (is_stopping and _is_complaint(event))):
                yield event

    def stop(self, cancellation: Cancellation) -> None:
        """Stop the run and wait for its end; its events are lost."""
        while self._thread.is_alive():
            self._tell(signal.SIGTERM if cancellation.is_at_once else signal.SIGINT)
            self._thread.join(_POLL_SECONDS)

    def tell_to_end(self) -> None:
        """End at once what was never set going, or has nothing more to do."""
        self._tell(signal.SIGTERM)

    def kill(self) -> None:
        """The same, and wait until it has ended."""
        while self._thread.is_alive():
            self.tell_to_end()
            self._thread.join(_KILL_POLL_SECONDS)

    def _tell(self, number: signal.Signals) -> None:
        """Signal the reaper once: now, or when it is there."""
        if number in self._told:
            return
        try:
            os.kill(int(self._pid_file.read_text(encoding="ascii")), number)
        except (FileNotFoundError, ProcessLookupError, ValueError):
            return
        self._told.add(number)

    def _work(self) -> None:
        """In the thread. It must live as long as the reaper: the kernel tells that one of our end."""
        try:
            self.rc = self._run()
        except BaseException as failure:  # noqa: BLE001 - a thread's exception is lost unless carried over
            self.failure = failure
        finally:
            self._queue.put(None)

    def _run(self) -> int:
        # Late, because nothing but a run needs it and each start of the command would pay for it.
        from ansible_runner.config.runner import RunnerConfig  # noqa: PLC0415
        from ansible_runner.runner import Runner  # noqa: PLC0415

        environment = {**self._environment, **self._temporary_places()}
        environment["ANSIBLE_CALLBACK_PLUGINS"] = str(_CALLBACKS)
        config = RunnerConfig(
            private_data_dir=str(self.scratch),
            ident=_IDENT,
            playbook="none",
            envvars=environment,
            fact_cache_type="memory",
            quiet=True,
            suppress_env_files=True,
        )
        config.prepare()
        # prepare() adds this process's environment, and knows an argument only as part of a string
        # that it splits: what was asked for replaces both.
        own = {
            **environment,
            "ANSIBLE_CALLBACK_PLUGINS": config.env["ANSIBLE_CALLBACK_PLUGINS"],
            "ANSIBLE_STDOUT_CALLBACK": "deploy_events",
            "AWX_ISOLATED_DATA_DIR": config.env["AWX_ISOLATED_DATA_DIR"],
        }
        # What a Runner would not look for could be set all the same: it would run something else.
        for name, value in {"env": own, "command": self._command, "cwd": str(Path.cwd())}.items():
            replace(config, name, value)
        for name, wish in _WISHES.items():
            try:
                replace(config, name, wish)
            except AttributeError:
                self._queue.put({"event": "warning", "stdout": _UNKNOWN_WISH.format(_runner(), name)})
        _, rc = Runner(config, event_handler=self._enqueue, status_handler=self._forget_command).run()
        return 1 if rc is None else int(rc)

    def _temporary_places(self) -> dict[str, str]:
        """Where Ansible leaves its temporary files, decrypted ones too: what is killed cleans nothing up."""
        place = self.scratch / "tmp"
        place.mkdir(mode=0o700)
        places = {"ANSIBLE_LOCAL_TEMP": str(place)}
        if len(str(place)) <= _LONGEST_SOCKET_DIRECTORY:
            places["TMPDIR"] = str(place)
        return places

    def _enqueue(self, raw: dict[str, Any]) -> bool:
        """Keep nothing on disk: the journal is ours."""
        # ansible-runner reuses the dictionary for the lines of one chunk.
        self._queue.put(dict(raw))
        return False

    def _forget_command(self, status: dict[str, Any], **_: object) -> None:
        """Remove the artifact that holds the whole environment, before anything runs in it."""
        if status["status"] == "running":
            (self.scratch / "artifacts" / _IDENT / "command").unlink(missing_ok=True)


def ansible_playbook(request: RunRequest, scratch: Path) -> list[str]:
    """The command line; passwords go into private files in ``scratch``."""
    command = [_ANSIBLE_PLAYBOOK]
    for inventory in request.inventories:
        command += ["--inventory", str(inventory.absolute())]
    for file in request.variable_files:
        command += ["--extra-vars", f"@{file.resolve()}"]
    for name, password in (
        ("connection", request.connection_password),
        ("become", request.become_password),
    ):
        if password is not None:
            command += [f"--{name}-password-file", _secret_file(scratch, password)]
    return [*command, *request.arguments, str(request.playbook.resolve())]


def _runner() -> str:
    return f"ansible-runner {version('ansible-runner')}"


def _secret_file(directory: Path, content: str) -> str:
    descriptor, path = tempfile.mkstemp(prefix="password-", dir=directory)
    with os.fdopen(descriptor, "w") as file:
        file.write(content)
    return path
