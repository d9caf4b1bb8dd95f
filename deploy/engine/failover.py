"""What ``deploy failover`` and ``deploy failback`` do: another of several controllers leads, as planned."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.engine.alone import alone
from deploy.engine.options import Options
from deploy.engine.run import Run, opened
from deploy.errors import DeployError, ExitCode, error
from deploy.judge.leading import LEADS, SILENT, leaders
from deploy.judge.upgrade_outcome import Fate, fates
from deploy.run.ssh import Unanswered, ask
from deploy.site.inventory import Site

_TAKE_SECONDS = 40.0
"""For how long the controller itself waits until it leads; its answer has a minute in all."""
_PATIENCE_SECONDS = 180.0
_POLL_SECONDS = 2.0


@dataclass(frozen=True)
class Moved:
    """Who led ``before`` and who does now; what became of the jobs that were there.

    ``silence`` is for how many seconds at most Slurm gave no answer; ``silent`` are controllers that do not
    answer now. Nothing was done where it led already.
    """

    before: str
    leader: str
    silence: float = 0.0
    silent: tuple[str, ...] = ()
    jobs: tuple[Fate, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether it led already."""
        return self.before == self.leader

    @property
    def hurt(self) -> tuple[Fate, ...]:
        """The jobs to which something was done."""
        return tuple(fate for fate in self.jobs if fate.trouble)

    @property
    def exit_code(self) -> ExitCode:
        """OK where no job was lost or started again."""
        return ExitCode.FAILED if self.hurt else ExitCode.OK


@dataclass(frozen=True)
class Intent:
    """What is to be done: who leads, who shall, and how many jobs there are."""

    before: str
    leader: str
    jobs: int


Agrees = Callable[[Intent], bool]


def failover(
    inventory: Path, to: str | None, options: Options, agrees: Agrees, say: Callable[[str], None]
) -> Moved:
    """Has the controller ``to`` lead, the second one where none is named.

    Raises DeployError before anything changes, and ``failover-stopped`` where it went wrong on the way.
    """
    return _move(inventory, options, agrees, say, lambda site: to or _second(site))


def failback(inventory: Path, options: Options, agrees: Agrees, say: Callable[[str], None]) -> Moved:
    """Has the first controller lead. Raises DeployError as ``failover`` does."""
    return _move(inventory, options, agrees, say, lambda site: site.controller.name)


def _move(
    inventory: Path,
    options: Options,
    agrees: Agrees,
    say: Callable[[str], None],
    chosen: Callable[[Site], str],
) -> Moved:
    with opened(inventory, options, needs_ansible=False) as run:
        names = run.controllers
        if len(names) == 1:
            raise error(
                "one-controller",
                f"{run.site.controller.name} is the only controller, so no other one could lead",
                where=run.inventory,
                hint="name two or three hosts in [slurm-master]; what they share says docs/controllers.md",
            )
        target = chosen(run.site)
        if target not in names:
            raise error(
                "invalid-option",
                f"{target} is no controller: [slurm-master] has {', '.join(names)}",
                where="--to",
                hint=f"name one of them: --to {_second(run.site)}",
            )
        with alone(run, lambda event: say(str(getattr(event, "message", event))), is_needed=True):
            return _Move(run, target, target == run.site.controller.name, say).made(agrees)


def _second(site: Site) -> str:
    """The controller that takes over from the first one."""
    return next(host.name for host in site.controllers if host != site.controller)


@dataclass(frozen=True)
class _Move:
    """A move of the lead to ``target``, which is asked for all that has to be known."""

    run: Run
    target: str
    is_first: bool
    say: Callable[[str], None]

    def made(self, agrees: Agrees) -> Moved:
        """Looks, asks, moves, verifies."""
        before = self._leader(self._stand())
        if before == self.target:
            return Moved(before, before)
        self._refuse_unready(before)
        jobs = self._queue(before)
        if not agrees(Intent(before, self.target, len(jobs))):
            raise error(
                "failover-not-agreed",
                f"{before} leads as before: nobody agreed",
                where=self.target,
                hint="on a terminal type yes; with --yes nothing is asked",
                exit_code=ExitCode.CHANGES_PENDING,
            )
        silence = self._taken(before)
        silent = self._started([name for name, stands in self._stand().items() if stands == SILENT])
        return Moved(before, self.target, silence, silent, self._fates(jobs))

    def _stand(self) -> dict[str, str]:
        """How each controller stands, as the target sees it; of the inventory's alone."""
        answer = self._ask("stand", {})
        return {name: str(said["stands"]) for name, said in answer.items() if name in self.run.controllers}

    def _leader(self, stand: Mapping[str, str]) -> str:
        """Who leads. Raises ``leader-unclear``, and ``controller-silent`` for a target that does not run."""
        found = leaders(stand)
        if len(found) != 1:
            what = f"{' and '.join(found)} lead at once" if found else "no controller that it reaches leads"
            raise error(
                "leader-unclear",
                f"nothing was changed: {what}. One that stands by takes over by itself after "
                "slurmctld_timeout seconds",
                where=self.target,
                hint=f"{self.run.command('status')}; {self.run.command('cluster')} starts what is stopped",
                exit_code=ExitCode.FAILED,
            )
        # The first one never stands by: it leads or is stopped, and takes the lead when it starts.
        if not self.is_first and stand.get(self.target) == SILENT:
            raise error(
                "controller-silent",
                "nothing was changed: its slurmctld does not answer, so it cannot take over",
                where=self.target,
                hint=f"deploy cluster {self.run.inventory} --limit {self.target}   (starts it)",
                exit_code=ExitCode.FAILED,
            )
        return found[0]

    def _refuse_unready(self, leader: str) -> None:
        troubles = self._ask("ready", {"leader": leader})
        for what, why in troubles.items():
            if why:
                raise error(
                    "failover-unready",
                    f"nothing was changed: it could not lead by its {what}: {why}",
                    where=self.target,
                    hint=_HINTS[what].format(inventory=self.run.inventory, target=self.target),
                    exit_code=ExitCode.FAILED,
                )

    def _queue(self, name: str) -> dict[str, list[Any]]:
        return dict(self._ask("queue", {"name": name})["jobs"])

    def _taken(self, before: str) -> float:
        """Moves the lead; for how many seconds at most nobody answered. Raises ``failover-stopped``."""
        began, halted_at = time.monotonic(), self._halted(before) if self.is_first else None
        given = {"name": self.target, "leader": before, "seconds": _TAKE_SECONDS}
        answer = self._asked("take", given)
        if not isinstance(answer, Unanswered) and answer.get("leads"):
            return round(max(0.0, float(answer["first"]) - (halted_at or float(answer["last"]))), 1)
        why = _trouble(answer)
        deadline = time.monotonic() + (0 if why and not isinstance(answer, Unanswered) else _PATIENCE_SECONDS)
        while True:
            found = self._asked("stand", {})
            stands = {} if isinstance(found, Unanswered) or "trouble" in found else found
            if stands.get(self.target, {}).get("stands") == LEADS:
                return round(time.monotonic() - began, 1)
            if time.monotonic() >= deadline:
                if halted_at:
                    self._started([before])
                raise self._stopped(before, why, {name: said["stands"] for name, said in stands.items()})
            time.sleep(_POLL_SECONDS)

    def _halted(self, before: str) -> float | None:
        """When the one that leads was stopped, in seconds since 1970; None where that could not be.

        Slurm would have it give up the lead by itself, but nobody answers for half a minute then (24.11).
        """
        answer = self._asked("halt", {}, host=before)
        if isinstance(answer, Unanswered) or answer["trouble"]:
            self.say(
                f"{before}: its slurmctld was not stopped before, so it takes longer: {_trouble(answer)}"
            )
            return None
        return float(answer["at"])

    def _started(self, silent: Collection[str]) -> tuple[str, ...]:
        """Starts those that may stand by; the ones that do not run."""
        left = []
        for name in silent:
            if name != self.run.site.controller.name:
                trouble = _trouble(self._asked("stand_by", {}, host=name))
                if not trouble:
                    continue
                self.say(f"{name}: its slurmctld does not start, to stand by: {trouble}")
            left.append(name)
        return tuple(left)

    def _stopped(self, before: str, why: str, stands: Mapping[str, str]) -> DeployError:
        """What is so, and what to type."""
        found = leaders(stands)
        now = f"{' and '.join(found)} leads" if found else "no controller that it reaches leads"
        said = f" ({why})" if why else ""
        logs = f"systemctl status slurmctld; tail -50 /var/log/slurm/slurmctld.log   (on {self.target})"
        ways = {True: f"it leads as before; {logs}", False: f"{logs}; {self._way_back(before)}"}
        return error(
            "failover-stopped",
            f"it did not take the lead from {before}{said}; now {now}",
            where=self.target,
            hint=ways[found == [before]],
            exit_code=ExitCode.FAILED,
        )

    def _way_back(self, before: str) -> str:
        """What has somebody lead again where nobody does."""
        if before == self.run.site.controller.name:
            return f"{before} leads again with: systemctl restart slurmctld   (on {before})"
        return f"{before} takes over after slurmctld_timeout seconds"

    def _fates(self, jobs: Mapping[str, list[Any]]) -> tuple[Fate, ...]:
        now = self._queue(self.target)
        gone = [job for job in jobs if job not in now]
        rows = self._ask("ended", {"names": gone}, source="slurm_look") if gone else {}
        return tuple(fates(jobs, now, rows))

    def _asked(
        self, verb: str, arguments: Mapping[str, Any], source: str = "leading", host: str = ""
    ) -> dict[str, Any] | Unanswered:
        questions, login = {host or self.target: (verb, arguments)}, self.run.options.login
        (answer,) = ask(questions, self.run.site.hosts, login, source=source).values()
        return answer if isinstance(answer, Unanswered) else dict(answer)

    def _ask(self, verb: str, arguments: Mapping[str, Any], source: str = "leading") -> dict[str, Any]:
        """What the target answers. Raises ``controller-silent``."""
        answer = self._asked(verb, arguments, source)
        if isinstance(answer, Unanswered) or answer.get("trouble"):
            raise error(
                "controller-silent",
                f"it is to lead, and does not answer: {_trouble(answer)}",
                where=self.target,
                hint=self.run.command("status"),
                exit_code=ExitCode.UNREACHABLE,
            )
        return dict(answer)


def _trouble(answer: Mapping[str, Any] | Unanswered) -> str:
    """Why a host gave no answer, or what it says went wrong; empty where nothing did."""
    return answer.why if isinstance(answer, Unanswered) else str(answer.get("trouble") or "")


_HINTS = {
    "state": "mount there what the controllers share, then: deploy cluster {inventory} --limit {target}",
    "configuration": "deploy cluster {inventory}",
    "database": "deploy status {inventory}; sacctmgr show cluster   (on {target})",
}
