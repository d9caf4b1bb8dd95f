"""What ``deploy try`` does: users' commands are typed, and judged by what they expect."""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deploy import __version__
from deploy.engine.options import Options
from deploy.errors import DeployError, ExitCode, error, shown_path
from deploy.judge.user_outcome import Outcome, Verdict, judge, left_out
from deploy.run.cancellation import signals_cancel
from deploy.run.user_session import Session
from deploy.site.inventory import Site
from deploy.site.user_commands import Command, typed_in_containers

__all__ = ["SECONDS", "Outcome", "Trial", "bad_option", "chosen_commands", "earlier", "type_commands"]

SECONDS = 180
"""The most that a command may take, and then its jobs, where nobody says otherwise."""


@dataclass(frozen=True)
class Trial:
    """What came of a site's commands; ``about`` says of what and when."""

    about: dict[str, Any]
    outcomes: tuple[Outcome, ...]

    @property
    def exit_code(self) -> ExitCode:
        """OK when all that was typed came out as expected."""
        is_good = all(outcome.verdict is not Verdict.DIFFERENT for outcome in self.outcomes)
        return ExitCode.OK if is_good else ExitCode.FAILED

    @property
    def too_large(self) -> frozenset[str]:
        """The commands for which no partition was large enough."""
        return frozenset(outcome.id for outcome in self.outcomes if outcome.is_too_large)

    def with_later(self, later: "Trial", here: str) -> "Trial":
        """The trial with what came of commands that were typed again, when ``here`` was so besides."""
        again = {
            outcome.id: replace(outcome, here=(*outcome.here, here)) if not outcome.is_too_large else outcome
            for outcome in later.outcomes
        }
        return replace(self, outcomes=tuple(again.get(outcome.id, outcome) for outcome in self.outcomes))


def type_commands(
    site: Site,
    commands: Iterable[Command],
    options: Options,
    *,
    in_containers: bool,
    seconds: float,
    tell: Callable[[Outcome], None],
) -> Trial:
    """Types commands on a site's first login node; ``tell`` gets each that has come out.

    Raises DeployError ``commands-not-typed``, and KeyboardInterrupt when it was interrupted.
    """
    listed = {
        command["id"]: typed_in_containers(command) if in_containers else command for command in commands
    }
    found: dict[str, Outcome] = {}
    about: dict[str, Any] = {
        "version": __version__,
        "inventory": shown_path(site.inventory),
        "at": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "in_containers": in_containers,
    }

    def keep(outcome: Outcome) -> None:
        found[outcome.id] = outcome
        tell(outcome)

    def on_answer(answer: dict[str, Any]) -> None:
        if "id" in answer:
            keep(judge(listed[answer["id"]], answer))
        about.update(answer.get("facts", {}))

    for command in listed.values():
        if in_containers and "cannot_run_here" in command:
            keep(left_out(command, command["cannot_run_here"]))
        elif "images" in command and not site.containers:
            keep(left_out(command, "no host of this site has containers (group slurm-container)"))
        elif command.get("password_file", "") not in {"", *command.get("files", {})}:
            keep(left_out(command, f"only a rehearsal knows a password of {command['user']}"))
    to_type = [command for name, command in listed.items() if name not in found]
    if to_type:
        session = Session(site.logins[0], options.login, seconds)
        with signals_cancel() as cancellation:
            session.type_commands(with_images(to_type, site, session), on_answer, cancellation)
        if cancellation.is_asked:
            raise KeyboardInterrupt
    return Trial(about, tuple(found[name] for name in listed if name in found))


def with_images(commands: Iterable[Command], site: Site, session: Session) -> list[dict[str, Any]]:
    """The commands with the content of their images, which a host makes that has containers."""
    listed = [dict(command) for command in commands]
    if not any("images" in command for command in listed):
        return listed
    image = Session(site.containers[0], session.login).make_image()
    for command in listed:
        command["images"] = dict.fromkeys(command.get("images", ()), image)
    return listed


def chosen_commands(commands: list[Command], only: list[str] | None, path: Path) -> list[Command]:
    """Those with the ids of ``--only``, of the file ``path``. Raises DeployError ``invalid-option``."""
    known = {command["id"] for command in commands}
    unknown = sorted(set(only or ()) - known)
    if unknown:
        raise bad_option(path, f"has no command {', '.join(unknown)}", "--only")
    return [command for command in commands if not only or command["id"] in only]


def earlier(path: Path) -> dict[str, dict[str, Any]]:
    """The commands of an earlier time, by id. Raises DeployError ``invalid-option``."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {command["id"]: command for command in content["commands"]}
    except OSError as problem:
        raise bad_option(path, f"cannot be read: {problem.strerror}", "--compare") from None
    except (ValueError, KeyError, TypeError):
        raise bad_option(path, "is not what --json writes", "--compare") from None


def bad_option(path: Path, message: str, option: str) -> DeployError:
    """What is wrong with a file that an option names."""
    return error(
        "invalid-option",
        f"{shown_path(path)} {message}",
        where=option,
        hint="see: deploy try --help",
    )
