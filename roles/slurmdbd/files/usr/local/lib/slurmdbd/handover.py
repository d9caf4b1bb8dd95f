#!/usr/bin/python3
"""The first slurmdbd begins when the second one has ended, so that its start costs that one no row.

A slurmdbd that starts makes sure that all tables are there. MariaDB does that on its other members before all
else, and what the slurmdbd that serves meanwhile is writing fails to commit ("1213 Deadlock found"); slurmdbd
answers slurmctld as if it were written (24.11.5 seen). So before the first one starts (``ask``) it asks in a
table of the database. On the other host ``watch`` sees that and restarts the second one, which ends in order,
says so before it starts (``follow``), and waits until the first one answers.

Nothing depends on an answer: without one the first one starts all the same, as does the second one without
the first. Run as root, whom MariaDB knows by its socket. Written with the standard library of Python 3.9
alone.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_TABLE = "deploy_handover"
_SLURMS_OWN = "table_defs_table"
"""A table that every slurmdbd makes: where it is missing the database is yet to be filled."""
_MEMBERS = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = '{}'"
_ANSWER_SECONDS = 10
_ASK_SECONDS, _ASK_PAUSE = 15.0, 0.2
_FOLLOW_SECONDS, _FOLLOW_PAUSE = 30.0, 0.5
_SETTLE_SECONDS = 5.0
"""What slurmctld says first to one that has begun is written by then."""
_END_SECONDS, _END_PAUSE = 5.0, 0.1
_LOOKS, _LOOK_PAUSE = 600, 0.5
_IN_VAIN = Path("/run/deploy/slurmdbd-handover-in-vain")
"""Written when the second one has ended for a first one that then did not begin."""
_REFUSE_SECONDS = 600.0
"""One that dies again and again when it starts does not keep the other one from serving."""
_RETRY_SECONDS = 2.0


class DatabaseError(Exception):
    """MariaDB did not do what it was asked for, with why."""


def sql(statement: str, seconds: float = _ANSWER_SECONDS) -> list[str]:
    """The lines of an answer. Raises DatabaseError."""
    command = ("mariadb", "--batch", "--skip-column-names", "--execute", statement)
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise DatabaseError(str(problem)) from None
    if done.returncode != 0:
        # Before what went wrong it repeats the statement.
        raise DatabaseError((done.stderr.strip().splitlines() or [""])[-1])
    return done.stdout.splitlines()


def said(*command: str) -> str:
    """What a command says; empty where it says nothing."""
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout.strip()


def say(words: str) -> None:
    """One line for the journal."""
    sys.stderr.write(f"{words}\n")


def listens(host: str, port: int) -> bool:
    """Whether somebody takes connections there."""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


class Handover:
    """The table: a turn is ``asked`` for by the first host, and ``given`` by the second."""

    def __init__(self, database: str) -> None:
        self.database = database
        self.table = f"`{database}`.{_TABLE}"
        self.is_open = (
            f"SELECT asked.turn FROM {self.table} AS asked LEFT JOIN {self.table} AS given "  # noqa: S608
            "ON given.what = 'given' WHERE asked.what = 'asked' AND asked.turn <> '' "
            "AND NOT asked.turn <=> given.turn"
        )

    def has(self, table: str) -> bool:
        """Raises DatabaseError."""
        here = f"table_schema = '{self.database}' AND table_name = '{table}'"
        return bool(sql(f"SELECT 'yes' FROM information_schema.tables WHERE {here}"))  # noqa: S608

    def make(self) -> bool:
        """Makes the table where slurmdbd's are; returns whether it is there. Raises DatabaseError."""
        if self.has(_TABLE):
            return True
        if not self.has(_SLURMS_OWN):
            return False
        sql(f"CREATE TABLE IF NOT EXISTS {self.table} (what CHAR(5) PRIMARY KEY, turn CHAR(32) NOT NULL)")
        return True

    def ask(self, turn: str) -> None:
        """Raises DatabaseError."""
        sql(f"REPLACE INTO {self.table} VALUES ('asked', '{turn}')")  # noqa: S608

    def give(self) -> None:
        """Says of what is asked, if anything is, that the second one has ended. Raises DatabaseError."""
        if self.open():
            sql(f"REPLACE INTO {self.table} SELECT 'given', turn FROM {self.table} WHERE what = 'asked'")  # noqa: S608
            say("the first slurmdbd is about to start, and this one has ended for it")

    def open(self) -> str:
        """What is asked for and not given; empty for nothing. Raises DatabaseError."""
        return "".join(sql(self.is_open))

    def await_open(self) -> bool:
        """Comes back when something is asked, or after some minutes; returns which. Raises DatabaseError."""
        look = f"SET @looks = 0; BEGIN NOT ATOMIC WHILE @looks < {_LOOKS} AND NOT EXISTS ({self.is_open}) DO "
        pause = f"SET @looks = @looks + 1; DO SLEEP({_LOOK_PAUSE}); END WHILE; END"
        sql(f"DELIMITER //\n{look}{pause}//", _LOOKS * _LOOK_PAUSE * 2)
        return bool(self.open())


def until(holds: Callable[[], bool], seconds: float, pause: float) -> bool:
    """Whether it held in so many seconds."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def ask(handover: Handover) -> None:
    """On the first host: has the second one end, where that host has the database, too."""
    (members,) = sql(_MEMBERS.format("wsrep_incoming_addresses")) or [""]
    # An arbitrator has no address there.
    if len([member for member in members.split(",") if member]) < 2:  # noqa: PLR2004
        return
    turn = uuid.uuid4().hex
    handover.ask(turn)
    if until(lambda: handover.open() != turn, _ASK_SECONDS, _ASK_PAUSE):
        return
    handover.ask("")
    say(f"the second host did not say within {_ASK_SECONDS:.0f} s that its slurmdbd has ended")


def follow(handover: Handover, host: str, port: int) -> None:
    """On the second host: says that it has ended where that is asked, and lets the first one begin."""
    deadline = time.monotonic() + _FOLLOW_SECONDS
    while handover.open() and time.monotonic() < deadline:
        if until(lambda: _begun(handover, host, port), _FOLLOW_SECONDS, _FOLLOW_PAUSE):
            with suppress(FileNotFoundError):
                _IN_VAIN.unlink()
            time.sleep(_SETTLE_SECONDS)
        else:
            say(
                f"the first slurmdbd did not answer within {_FOLLOW_SECONDS:.0f} s, so this one does not end "
                f"for it for {_REFUSE_SECONDS / 60:.0f} minutes"
            )
            _IN_VAIN.parent.mkdir(mode=0o755, exist_ok=True)
            _IN_VAIN.touch()


def _begun(handover: Handover, host: str, port: int) -> bool:
    handover.give()
    return listens(host, port)


def refuses() -> bool:
    """Whether it ended in vain a short time ago."""
    try:
        return time.time() - _IN_VAIN.stat().st_mtime < _REFUSE_SECONDS
    except FileNotFoundError:
        return False


def runs() -> bool:
    """Whether slurmdbd runs here, or is about to."""
    state = said("systemctl", "show", "--property=ActiveState", "--value", "slurmdbd")
    return state in {"active", "activating", "reloading", "deactivating"}


def watch(handover: Handover) -> None:
    """On the second host: restarts slurmdbd, where it runs, when the first one asks."""
    while True:
        try:
            if handover.make() and handover.await_open():
                if not runs():
                    handover.give()
                elif not refuses():
                    subprocess.run(("systemctl", "try-restart", "slurmdbd"), check=False)
        except DatabaseError:
            pass
        time.sleep(_RETRY_SECONDS)


def end(port: int, process: int) -> None:
    """On the second host: ends slurmdbd, which takes no SIGTERM once it has given the lead back."""

    def ended() -> bool:
        return not Path(f"/proc/{process}").exists()

    # One that stands by has nothing to bring to an end.
    if said("ss", "-Hltn", f"sport = :{port}"):
        os.kill(process, signal.SIGTERM)
        if until(ended, _END_SECONDS, _END_PAUSE):
            return
        say(f"slurmdbd did not end within {_END_SECONDS:.0f} s, and is killed")
    os.kill(process, signal.SIGKILL)


def agree(verb: str, database: str, *place: str) -> None:
    """Does one of those that need the database, which keeps nobody from starting where it does not answer."""
    handover = Handover(database)
    try:
        if verb == "watch":
            watch(handover)
        elif not handover.has(_TABLE):
            pass  # nobody watches yet
        elif verb == "ask":
            ask(handover)
        else:
            follow(handover, place[0], int(place[1]))
    except DatabaseError as problem:
        say(f"the two slurmdbd could not agree on who begins: {problem}")


def main(verb: str, *words: str) -> int:
    """``ask`` and ``watch DATABASE``, ``follow DATABASE HOST PORT`` of the first, ``end PORT [PROCESS]``."""
    if verb != "end":
        agree(verb, *words)
    elif len(words) > 1:  # systemd has no process of one that has ended already
        with suppress(ProcessLookupError):
            end(int(words[0]), int(words[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
