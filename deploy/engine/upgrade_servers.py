"""Step of an upgrade: slurmdbd and slurmctld, each first where it leads, while nobody stands by.

One that stands by with the earlier release could take over what the later one has written: so it is stopped
and masked before the first one changes, and starts again when it is changed itself. Masked, because MariaDB
starts slurmdbd, and a boot starts both.
"""

import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deploy.engine.database import half_database
from deploy.errors import DeployError, ExitCode, error
from deploy.judge.leading import leaders
from deploy.judge.upgrade_route import is_of
from deploy.judge.version_skew import release, shown
from deploy.site.inventory import Host, Site
from deploy.site.node_lists import fold

if TYPE_CHECKING:
    from deploy.engine.upgrade import Walk

_BACKUPS = "/var/backups/deploy"
_LEAST_CONVERSION = 120
"""Seconds; a site whose slurmdbd_start_timeout is longer waits that long."""


def servers(site: Site) -> tuple[Host, ...]:
    """The hosts of slurmdbd and slurmctld, in the order in which they are upgraded."""
    others = (host for host in site.controllers if host not in site.accounting_hosts)
    return (*site.accounting_hosts, *others)


def compute(site: Site) -> list[str]:
    """The compute nodes that are no server, too: those that are upgraded one by one."""
    return [host.name for host in site.nodes if host not in servers(site)]


def told(site: Site) -> dict[str, dict[str, Any]]:
    """By server what the play is told of it: which daemons it has, and which of them are the first."""
    kinds = {"slurmdbd": site.accounting_hosts, "slurmctld": site.controllers}
    first = {"slurmdbd": site.database_host, "slurmctld": site.controller}
    return {
        host.name: {
            "upgrade_units": [unit for unit, hosts in kinds.items() if host in hosts],
            "upgrade_first": [unit for unit in kinds if host == first[unit]],
        }
        for host in servers(site)
    }


def refuse_unready(walk: "Walk", looks: Mapping[str, Mapping[str, Any]]) -> None:
    """Raises DeployError where the database is not whole, or another than the first controller leads."""
    site, run = walk.run.site, walk.run
    if found := half_database(site, run.options):
        raise DeployError(*found, exit_code=ExitCode.FAILED)
    first = site.controller.name
    # With the new release it may have been stopped only by an upgrade that was cut off.
    if len(site.controllers) == 1 or not is_old(looks[first], walk.state.wanted):
        return
    lead = leaders(walk.state.standing())
    if lead and lead != [first]:
        raise error(
            "upgrade-other-leads",
            f"{fold(lead)} leads; an upgrade begins where the first controller does",
            where=first,
            hint=f"{run.command('failback')}, then the same again: {run.command('upgrade')}",
            exit_code=ExitCode.FAILED,
        )


def await_conversion(walk: "Walk", looks: Mapping[str, Mapping[str, Any]]) -> None:
    """Until a slurmdbd answers that an earlier upgrade started: while it converts, nothing is stopped.

    Nor is another one started beside it, which would write what it changes.
    """
    first = walk.run.site.database_host.name
    is_begun = not is_old(looks[first], walk.state.wanted)
    is_up = looks[first]["daemons"].get("slurmdbd", "inactive") not in {"inactive", "failed"}
    if is_begun and is_up and walk.state.left_of(servers(walk.run.site)):
        walk.run.say(f"slurmdbd on {first}: goes on when it has converted the database")
        walk.step("answers", [first])


def is_old(look: Mapping[str, Any], wanted: str) -> bool:
    """Whether the release of before is there, whole: nothing was begun on that host."""
    packages = look["packages"].values()
    return not look["broken"] and not all(is_of(version, wanted) for version in packages)


@dataclass
class Servers:
    """The servers of one upgrade, as far as they are left."""

    walk: "Walk"
    left: list[str] = field(init=False)
    backup: str = ""
    """Where database and state are kept as they were."""
    kept_on: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.left = self.walk.state.left_of(servers(self.walk.run.site))

    @property
    def _site(self) -> Site:
        return self.walk.run.site

    def rehearse(self) -> Mapping[str, Any]:
        """The wanted release judges the configuration, and converts a dump of the database.

        Not where it is installed already: then an upgrade that was cut off did that.
        """
        wanted, state = self.walk.state.wanted, self.walk.state
        judges, converts = self._site.controller.name, self._site.database_host.name
        looks = state.looks({judges, converts})
        if is_old(looks[judges], wanted):
            self.walk.run.say(f"slurmctld {wanted} judges the configuration")
            self.walk.step("judge", [judges])
        if not is_old(looks[converts], wanted):
            return {}
        self.walk.run.say(f"slurmdbd {wanted} converts a dump of the database")
        answers = self.walk.step("rehearse", [converts])
        return next((said for said in answers.values() if "counts" in said), {})

    def change(self, seconds: float) -> None:
        """All that are left; ``seconds`` is how long the rehearsal converted."""
        old = release(self.walk.state.before[self.left[0]])
        now = time.strftime("%Y%m%d-%H%M%S")
        self.backup = f"{_BACKUPS}/slurm-{shown(old) if old else 'unknown'}-{now}"
        patience = int(4 * seconds) + _LEAST_CONVERSION
        for unit, hosts in (("slurmdbd", self._site.accounting_hosts), ("slurmctld", self._site.controllers)):
            first, *others = [host.name for host in hosts]
            if first in self.left:
                with _Without(self, unit, first, others):
                    self._serve([first], patience)
            # Both slurmdbd would change the tables: the second one starts when the first one has.
            self._serve([name for name in others if name in self.left], patience)
        # Without a slurmctld of their own, what else is there needs the new one, which came later.
        controllers = {host.name for host in self._site.controllers}
        self.walk.step("rest", [name for name in self.walk.done if name not in controllers])

    def _serve(self, names: list[str], patience: int) -> None:
        """Servers of one kind that change at once."""
        if not names:
            return
        said = told(self._site)
        firsts = [name for name in names if said[name]["upgrade_first"]]
        kept = f"is kept in {self.backup}, " if firsts else ""
        units = _daemons(said, names)
        self.walk.run.say(f"{units} on {fold(names)}: stops, {kept}starts as {self.walk.state.wanted}")
        self.kept_on += firsts
        self.walk.forget(names)
        self.walk.step(
            "controllers", names, slurm_backup_directory=self.backup, slurm_conversion_patience=patience
        )
        self.left = [name for name in self.left if name not in names]
        self.walk.done += names


def _daemons(said: Mapping[str, Mapping[str, Any]], names: Collection[str]) -> str:
    """The daemons of hosts, as a sentence begins with them."""
    return " and ".join(dict.fromkeys(unit for name in names for unit in said[name]["upgrade_units"]))


@dataclass
class _Without:
    """While it lasts, a daemon is masked where it stands by.

    Afterwards it is there again, but where the first one has the later release and it has the earlier one: it
    stays masked until it is changed itself.
    """

    servers: Servers
    unit: str
    first: str
    others: list[str]

    def __enter__(self) -> None:
        looks = self.servers.walk.state.looks(self.others)
        self.others = [name for name in self.others if self.unit in looks[name]["daemons"]]
        if self.others:
            self.servers.walk.run.say(
                f"{self.unit} on {fold(self.others)}: stops, so that it does not take over"
            )
            self._bring("stopped", self.others)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        state = self.servers.walk.state
        if kind is None:
            self._bring("started", [name for name in self.others if name not in self.servers.left])
            return
        with suppress(DeployError):
            if is_old(state.looks([self.first])[self.first], state.wanted):
                self._bring("started", self.others)

    def _bring(self, state: str, names: list[str]) -> None:
        self.servers.walk.step("standby", names, upgrade_unit=self.unit, upgrade_state=state)
