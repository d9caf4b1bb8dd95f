"""What deploy runs on a controller to know which of several leads, and to have it take the lead.

Of several slurmctld the one that leads alone answers more than a ping; one that stands by refuses. So each is
asked by a slurm.conf that names no other, and what it says is Slurm's own word, not that of a file or a log.

Sent as text over ssh and run as root, with the standard library of Python 3.9 alone.
"""

from __future__ import annotations

import re
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from deploy.run.host_commands import last_line, runner, tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

CONFIGURATION = Path("/etc/slurm/slurm.conf")
OWN = Path("/var/lib/deploy/slurmctld/deploy_configuration")
"""Which configuration this host has; in the state a file of that name says which ones may lead."""
_CONTROLLER = re.compile(r"^\s*SlurmctldHost\s*=\s*([^\s(#]+)", re.IGNORECASE | re.MULTILINE)
_SINCE = re.compile(r"^Data since\s.*\((\d+)\)", re.MULTILINE)
_STATE = re.compile(r"^\s*StateSaveLocation\s*=\s*(\S+)", re.IGNORECASE | re.MULTILINE)
_TIMEOUT = re.compile(r"^\s*SlurmctldTimeout\s*=\s*(\d+)", re.IGNORECASE | re.MULTILINE)
_DEFAULT_TIMEOUT = 120
_STANDS_BY = "standby mode"
_POLL_SECONDS = 0.5
"""One that stands by logs every question."""
_run = runner(12)
_AGAIN_SECONDS = 90
_AGAIN = "deploy-stands-by"
"""The unit that starts a slurmctld which was stopped for a move, whatever becomes of the command."""
_order = runner(45)
"""For what makes another controller lead: less than whoever sent this program waits."""


class NoConfigurationError(Exception):
    """There is no slurm.conf here that names controllers: ``why``."""

    def __init__(self, why: str | None = "it names no controller") -> None:
        super().__init__(f"{CONFIGURATION}: {why}")


def _configuration() -> tuple[str, list[str]]:
    try:
        text = CONFIGURATION.read_text(encoding="utf-8", errors="replace")
    except OSError as problem:
        raise NoConfigurationError(problem.strerror) from None
    names = [str(name) for name in _CONTROLLER.findall(text)]
    if not names:
        raise NoConfigurationError
    return text, names


def naming(text: str, name: str) -> str:
    """The slurm.conf with one controller alone."""

    def is_kept(line: str) -> bool:
        found = _CONTROLLER.match(line)
        return found is None or found.group(1) == name

    return "".join(line for line in text.splitlines(keepends=True) if is_kept(line))


@contextmanager
def _each_alone() -> Iterator[dict[str, str]]:
    """By controller the path of a slurm.conf that names it alone."""
    text, names = _configuration()
    with tempfile.TemporaryDirectory(prefix="deploy-leading-") as directory:
        places = {name: Path(directory) / f"{number}.conf" for number, name in enumerate(names)}
        for name, place in places.items():
            place.write_text(naming(text, name), encoding="utf-8")
        yield {name: str(place) for name, place in places.items()}


def _ask(place: str) -> dict[str, str]:
    """How a controller ``stands``: ``leads``, ``stands by``, ``silent`` (and ``why``).

    It has led since then at least, in seconds since 1970: ``since`` is when its statistics began, which is
    when it took the lead, when it was last reconfigured, or midnight. Slurm says no more of it.
    """
    said, succeeded = _run("env", f"SLURM_CONF={place}", "sdiag")
    if succeeded:
        since = _SINCE.search(said)
        return {"stands": "leads", "why": "", "since": since.group(1) if since else ""}
    if _STANDS_BY in said:
        return {"stands": "stands by", "why": "", "since": ""}
    return {"stands": "silent", "why": last_line(said) or "no answer", "since": ""}


def stand() -> dict[str, dict[str, str]]:
    """How each controller stands, by name, as this host sees them; the first of slurm.conf comes first."""
    with _each_alone() as places:
        found: dict[str, dict[str, str]] = {}

        def one(name: str, place: str) -> None:
            found[name] = _ask(place)

        threads = [threading.Thread(target=one, args=item) for item in places.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {name: found[name] for name in places}


def ready(leader: str) -> dict[str, str]:
    """What keeps this controller from leading after another one, by subject; empty where nothing does."""
    text, names = _configuration()
    found = _STATE.search(text)
    directory = found.group(1) if found else "/var/spool"
    return {
        "state": _state_trouble(directory, text, names, leader),
        "configuration": _configuration_trouble(directory),
        "database": _database_trouble(),
    }


def _configuration_trouble(directory: str) -> str:
    """Why it would lead with another configuration than the last; empty where it has that or none knows."""
    said, succeeded = _as_slurm("cat", f"{directory}/{OWN.name}")
    own = OWN.read_text(encoding="utf-8").strip() if OWN.exists() else ""
    if not succeeded or not own or own in (said.split() or [own]):
        return ""
    return "the cluster was given another one while this host was away"


def _state_trouble(directory: str, text: str, names: list[str], leader: str) -> str:
    """Why the state is not what the leader writes; empty where it is. Root may be nobody on its storage."""
    said, succeeded = _as_slurm("test", "-w", directory)
    if not succeeded:
        return f"the user slurm cannot write in {directory} {said.strip()}".strip()
    said, succeeded = _as_slurm("test", "-r", f"{directory}/job_state")
    if not succeeded:
        # PERIODIC_CHECKPOINT in slurmctld's sources.
        return (
            f"the user slurm finds no queue in {directory}; a slurmctld that was started for the first time"
            f" writes it within five minutes {said.strip()}"
        ).strip()
    heartbeat = ("od", "-An", "-v", "--endian=big", "-t", "u8", "-N", "16", f"{directory}/heartbeat")
    said, _ = _as_slurm(*heartbeat)
    words = said.split()
    if len(words) != len(("when", "place")) or not all(word.isdigit() for word in words):
        return f"{directory} has no heartbeat of a slurmctld that leads"
    when, place = map(int, words)
    whose = names[place] if place < len(names) else f"number {place}"
    age, timeout = int(time.time()) - when, _TIMEOUT.search(text)
    if whose != leader or age > max(60, int(timeout.group(1)) if timeout else _DEFAULT_TIMEOUT):
        return f"{directory} was written by {whose} {age} s ago, and not just now by {leader}, which leads"
    return ""


def _as_slurm(*command: str) -> tuple[str, bool]:
    return _run("runuser", "--user=slurm", "--", *command)


def _database_trouble() -> str:
    """Why slurmdbd does not answer: without it a slurmctld that is to lead waits."""
    said, succeeded = _run("sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=cluster")
    if succeeded and said.strip():
        return ""
    return last_line(said) or "no answer"


def halt() -> dict[str, Any]:
    """Stops the slurmctld that leads, which writes its state; ``at`` that time, in seconds since 1970.

    It starts again by itself, to stand by: where nobody comes to lead meanwhile, it takes over.
    """
    _run("systemctl", "stop", f"{_AGAIN}.timer")  # of a move just before
    timer = ("systemd-run", "--quiet", "--collect", f"--unit={_AGAIN}", f"--on-active={_AGAIN_SECONDS}")
    if trouble := _complaint(*_run(*timer, "systemctl", "start", "slurmctld")):
        return {"at": 0.0, "trouble": trouble}
    at = time.time()
    return {"at": at, "trouble": _complaint(*_order("systemctl", "stop", "slurmctld"))}


def stand_by() -> dict[str, str]:
    """Starts the slurmctld of a controller that is not the first: it stands by.

    Where that is done it is not started once more: somebody may stop it on purpose.
    """
    trouble = _complaint(*_order("systemctl", "start", "slurmctld"))
    if not trouble:
        _run("systemctl", "stop", f"{_AGAIN}.timer")
    return {"trouble": trouble}


def _complaint(said: str, succeeded: bool) -> str:  # noqa: FBT001 - what a runner returns
    """Nothing, or the last that a command said which failed."""
    return "" if succeeded else last_line(said) or "it failed"


def take(name: str, leader: str, seconds: float) -> dict[str, Any]:
    """Has the controller of this name, which this is, lead instead of another one; waits for so long.

    The first of slurm.conf takes the lead when it starts, and stands by never; another one when it is told.
    ``leads``: whether it does now; ``last`` is when the one answered last, ``first`` when the other one first
    did, in seconds since 1970; ``trouble``: what the command said, where it failed.
    """
    with _each_alone() as places:
        place = [*places].index(name)
        command = ("scontrol", "takeover", str(place)) if place else ("systemctl", "restart", "slurmctld")
        watch = _Watch(places[leader], places[name])
        watch.start()
        trouble = _complaint(*_order(*command))
        watch.wait(0 if trouble else seconds)
        return {"leads": watch.is_led, "last": watch.last, "first": watch.first, "trouble": trouble}


class _Watch:
    """Asks two controllers again and again: until when the one led, and from when on the other does."""

    def __init__(self, old: str, new: str) -> None:
        self._is_over = threading.Event()
        self._answered: dict[str, float] = {}
        self._old, self._new = old, new
        self._threads = [
            threading.Thread(target=self._follow, args=(old,)),
            threading.Thread(target=self._await, args=(new,)),
        ]

    def start(self) -> None:
        """Begins when the one that leads has answered once."""
        self._answered[self._old] = time.time()
        for thread in self._threads:
            thread.start()

    def wait(self, seconds: float) -> None:
        """Ends when the new one leads, or after so long."""
        self._threads[1].join(seconds)
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    @property
    def is_led(self) -> bool:
        """Whether the new one leads."""
        return self._new in self._answered

    @property
    def last(self) -> float:
        """When the old one answered last."""
        return self._answered[self._old]

    @property
    def first(self) -> float | None:
        """When the new one answered first."""
        return self._answered.get(self._new)

    def _follow(self, place: str) -> None:
        while not self._is_over.is_set() and not self.is_led:
            if _ask(place)["stands"] == "leads":
                self._answered[place] = time.time()
            self._is_over.wait(_POLL_SECONDS)

    def _await(self, place: str) -> None:
        while not self._is_over.is_set():
            if _ask(place)["stands"] == "leads":
                self._answered[place] = time.time()
                return
            self._is_over.wait(_POLL_SECONDS)


def queue(name: str) -> dict[str, Any]:
    """The jobs as this controller alone says them: by id the state, and how often each was started again."""
    with _each_alone() as places:
        words = "JobArrayID:60,State:20,RestartCnt:10"
        call = ("squeue", "--noheader", "--all", "--array", "--Format", words)
        said, succeeded = _run("env", f"SLURM_CONF={places[name]}", *call)
        if not succeeded:
            return {"trouble": said.strip()[-200:] or "no answer"}
        rows = [line.split() for line in said.splitlines()]
        return {"jobs": {row[0]: [row[1], int(row[2])] for row in rows if len(row) == 1 + words.count(",")}}


def main(verb: str, arguments: Mapping[str, Any]) -> None:
    """Does what it is asked for and prints the answer as one line."""
    verbs: dict[str, Callable[..., Any]] = {
        "stand": stand,
        "ready": ready,
        "halt": halt,
        "take": take,
        "stand_by": stand_by,
        "queue": queue,
    }
    try:
        answer = verbs[verb](**arguments)
    except (NoConfigurationError, OSError, ValueError, KeyError) as problem:
        answer = {"trouble": str(problem)}
    tell(answer)
