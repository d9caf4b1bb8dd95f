"""A backup restored on the machines of a lab, which reach nothing but each other by then."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from deploy.durable import replace_file
from deploy.engine.backup import parts_of
from deploy.engine.drill import Archive, put_back
from deploy.engine.options import Options
from deploy.errors import ExitCode, error
from deploy.judge.drilled import Association, Compared, Restored, Verdict, compared
from deploy.lab.apart import cut_off
from deploy.lab.podman import podman, succeeds
from deploy.lab.rehearsed_site import Rehearsed, rehearsed, rehearsed_secrets
from deploy.lab.state import Lab, container_name
from deploy.run.archive import made_by
from deploy.site.inventory import DATABASE, MASTER, Site
from deploy.site.secrets import change_secrets, secrets_file
from deploy.site.user_commands import default_file, read_user_commands

_SECONDS_TO_ANSWER = 180
_SECONDS_TO_END = 120
_PAUSE = 1.0
_AT_ONCE = 200
_COUNT = "SELECT COUNT(*) FROM `{}`.`{}`"
_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = '{}'"
_ACTIVE = "PENDING,RUNNING,SUSPENDED,CONFIGURING,REQUEUED"
_OUT_OF_SERVICE = re.compile(r"drain|down|fail", re.IGNORECASE)
_TIME = re.compile(r"(?:(\d+)-)?(\d+):(\d+):(\d+)")
_DAEMONS = "slurmdbd,slurmctld"

Deploys = Callable[[Options], None]
"""``deploy cluster`` on the lab; raises where it fails."""


def in_shape(site: Site, most: int) -> Rehearsed:
    """A site as a lab has it: all controllers, the database's host, at most so many of each other kind."""
    content = default_file(site)
    shared = read_user_commands(content)["shared"] if content.is_file() else []
    if len(site.controllers) > 1:
        shared = [*shared, parts_of(site.resolved)["state"]]
    return rehearsed(site, shared, most=most, gpus=0, whole=frozenset({MASTER, DATABASE}))


@dataclass
class Drill:
    """A drill at work: what was done so far, what was found, what it took."""

    lab: Lab
    site: Site
    archive: Archive
    say: Callable[[str], None]
    steps: list[tuple[str, float]] = field(default_factory=list)
    compared: tuple[Compared, ...] = ()
    resumed: tuple[str, ...] = ()
    _database: Mapping[str, int] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Times a step, also one that fails."""
        self.say(f"{name} ...")
        began = time.monotonic()
        try:
            yield
        finally:
            self.steps.append((name, time.monotonic() - began))

    @property
    def is_as_said(self) -> bool:
        """Whether nothing is otherwise than the manifest says."""
        return bool(self.compared) and all(row.verdict is not Verdict.DIFFERENT for row in self.compared)

    def share_state(self) -> None:
        """Lets the user slurm, whom there is not yet, write where several controllers will have their state.

        The first deployment gives the directory to him alone.
        """
        if len(self.site.controllers) > 1:
            self._on(self.site.controller.name, "chmod", "0777", parts_of(self.site)["state"])

    def give_secrets(self, text: str | None, vault_password_file: Path | None) -> None:
        """The secrets of the backup, for the owner of the lab's directory alone, which goes with it."""
        if text is not None:
            path = secrets_file(self.site)
            replace_file(path, text)
            change_secrets(path, vault_password_file, rehearsed_secrets)

    def cut_off(self, site: Site) -> dict[str, Any]:
        """See ``apart``; ``site`` is the one of which none may be reached."""
        return cut_off(self.lab, site)

    def restore(self, options: Options, deploys: Deploys) -> None:
        """Puts state and database in place and starts Slurm's daemons, while no node can run a job.

        What the queue has are jobs of users, none of which may start here.
        """
        for node in self.site.nodes:
            self._on(node.name, "systemctl", "stop", "slurmd")

        def started(options: Options) -> None:
            self._database = self._counted()
            hosts = (*self.site.controllers, *self.site.accounting_hosts)
            names = {host.name: None for host in hosts}
            deploys(replace(options, limit=",".join(names), tags=_DAEMONS))

        put_back(
            self.site.inventory,
            self.archive,
            options,
            say=self.say,
            deploys=started,
        )

    def compare(self) -> None:
        """Compares what Slurm has with the manifest."""
        self._wait_for_slurm()
        age = time.time() - self.archive.manifest["made_at"]
        self.compared = compared(self.archive.manifest, self._restored(), age)

    def clear(self) -> None:
        """Ends the jobs of the backup, so that nodes can come; puts nodes of then back into service.

        Raises DeployError ``drill-jobs-left``.
        """
        deadline = time.monotonic() + _SECONDS_TO_END
        while jobs := self._asked("squeue", "--noheader", "--all", f"--states={_ACTIVE}", "--format=%A"):
            if time.monotonic() > deadline:
                raise error(
                    "drill-jobs-left",
                    f"{len(jobs)} jobs of the backup do not end, and would run here: nodes were not started",
                    where=self.site.controller.name,
                    hint="look with --keep; the cluster itself was not touched",
                    exit_code=ExitCode.FAILED,
                )
            for index in range(0, len(jobs), _AT_ONCE):
                succeeds(*self._words("scancel", "--quiet", *jobs[index : index + _AT_ONCE]))
            time.sleep(_PAUSE)
        shown = self._asked("sinfo", "--noheader", "--all", "--Node", "--format=%N|%T")
        states = dict(line.split("|") for line in shown)
        self.resumed = tuple(name for name, state in states.items() if _OUT_OF_SERVICE.search(state))
        for name in self.resumed:
            succeeds(*self._words("scontrol", "update", f"nodename={name}", "state=resume"))

    def _counted(self) -> dict[str, int]:
        """Tables, jobs and associations of the database, as a manifest counts them."""
        host, name = self.site.database_host.name, parts_of(self.site)["database"]

        def rows(statement: str) -> list[str]:
            said = self._on(host, "mariadb", "--batch", "--skip-column-names", "--execute", statement)
            return said.splitlines()

        tables = rows(_TABLES.format(name))
        found = {"tables": len(tables)}
        for what, ending in (("jobs", "_job_table"), ("associations", "_assoc_table")):
            of_clusters = [table for table in tables if table.endswith(ending)]
            found[what] = sum(int(rows(_COUNT.format(name, table))[0]) for table in of_clusters)
        return found

    def _restored(self) -> Restored:
        listed = self._asked("squeue", "--noheader", "--all", "--states=all", "--format=%A|%T")
        config = "\n".join(self._asked("scontrol", "show", "config"))
        following = re.search(r"^NEXT_JOB_ID\s*=\s*(\d+)", config, re.MULTILINE)
        return Restored(
            self._database,
            {int(job): state for job, _, state in (line.partition("|") for line in listed)},
            int(following[1]) if following else None,
            associations(self._asked(*made_by().SHARES)),
            half_life(config),
        )

    def _wait_for_slurm(self) -> None:
        """Raises DeployError ``drill-no-slurm``."""
        deadline = time.monotonic() + _SECONDS_TO_ANSWER
        while not succeeds(*self._words("timeout", "15", *made_by().SHARES)):
            if time.monotonic() > deadline:
                raise error(
                    "drill-no-slurm",
                    f"slurmctld does not answer {_SECONDS_TO_ANSWER} s after it was started with the state "
                    "of the backup",
                    where=self.site.controller.name,
                    hint="the same with --keep, and look: deploy lab exec --name LAB HOST -- journalctl -u "
                    "slurmctld",
                    exit_code=ExitCode.FAILED,
                )
            time.sleep(_PAUSE)

    def _asked(self, *command: str) -> list[str]:
        said = self._on(self.site.controller.name, *command)
        return [line.strip() for line in said.splitlines() if line.strip()]

    def _on(self, host: str, *command: str) -> str:
        return podman(*self._words(*command, host=host))

    def _words(self, *command: str, host: str = "") -> tuple[str, ...]:
        return "exec", container_name(self.lab.name, host or self.site.controller.name), *command


def associations(lines: Sequence[str]) -> tuple[Association, ...]:
    """What sshare printed, as backups have it."""
    return tuple((row[0], row[1], row[2], row[3]) for row in made_by().associations(lines))


def half_life(config: str) -> float | None:
    """How long it takes usage to halve, by what scontrol printed; 0 never, None where usage begins anew."""
    said = dict(re.findall(r"^(Priority\w+)\s*=\s*(\S+)", config, re.MULTILINE))
    if said.get("PriorityUsageResetPeriod", "NONE") != "NONE":
        return None
    match = _TIME.fullmatch(said.get("PriorityDecayHalfLife", ""))
    if not match:
        return 0.0
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
