"""A site that was read and found right, and what every step of a run on it goes by."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from deploy.content import playbook
from deploy.engine.members import Members
from deploy.engine.options import Options
from deploy.engine.powered_down import powered_down, said_of
from deploy.engine.records import Records
from deploy.errors import DeployError, ExitCode, Finding, error, shown_path
from deploy.judge.summary import Outcome, summarize
from deploy.place import private_place
from deploy.plan.build import build_plan
from deploy.plan.port_clashes import port_clashes
from deploy.plan.tags import unknown_tags, words
from deploy.run.cancellation import Cancellation, signals_cancel
from deploy.run.events import Event, HostResult
from deploy.run.execute import EarlyStart, RunRequest, execute
from deploy.run.settings import Settings, ansible_environment
from deploy.site.accounting import load_judges
from deploy.site.checks import check_site
from deploy.site.hardware import read_contract
from deploy.site.inventory import Site, existing_inventory, read_site
from deploy.site.node_lists import unfold
from deploy.site.variables import read_extra_variables

_UNMATCHED = re.compile(r"Could not match supplied host pattern, ignoring: (.*)")


@dataclass(frozen=True)
class Run:
    """One run on a site; ``place`` is a private directory that vanishes with it.

    ``limit`` are the hosts that it may reach, None for all; ``named`` are those that --limit names, None
    without it, and ``away`` those of them that Slurm has switched off. ``ansible`` was started while the site
    was read; ``warnings`` are what the offline checks said, and that hosts are away.
    """

    site: Site
    options: Options
    settings: Settings
    place: Path
    limit: frozenset[str] | None
    ansible: EarlyStart
    warnings: tuple[Finding, ...] = ()
    named: frozenset[str] | None = None
    away: frozenset[str] = frozenset()
    say: Callable[[str], None] = lambda _: None
    """Gets what there is to say beside the run itself, in lines."""
    cancellation: Cancellation = field(default_factory=Cancellation)

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that take part, in the order in which the inventory names them."""
        return build_plan(self.site, limit=self.limit).hosts

    @property
    def inventory(self) -> str:
        """The inventory as one would type it."""
        return shown_path(self.site.inventory)

    def command(self, verb: str) -> str:
        """A verb for this site, as one would type it."""
        return f"deploy {verb} {self.inventory}"

    def again(self, limit: str | None = None) -> str:
        """The same run as one would type it; on other hosts where a ``limit`` is given, or on all."""
        return self.command("cluster") + self.options.again(limit)

    @property
    def controllers(self) -> list[str]:
        """The names of the site's controllers."""
        return [host.name for host in self.site.controllers]

    @property
    def accounting(self) -> list[str]:
        """The names of its hosts of slurmdbd."""
        return [host.name for host in self.site.accounting_hosts]

    @property
    def records(self) -> Records:
        """The records on its hosts."""
        return Records(self.site, self.options)

    @property
    def members(self) -> Members:
        """Its hosts of then and now."""
        return Members(self.site, self.options)

    def narrowed(self) -> "Run":
        """The run without what Slurm has switched off since it was opened; the same where that is nothing."""
        gone = powered_down(self.site.resolved, self.options.login, self.limit)
        if not gone:
            return self
        limit = frozenset(self.site.hosts) if self.limit is None else self.limit
        return replace(self, limit=limit - gone, away=self.away | gone)

    def those_on(self, names: Sequence[str], verb: str) -> list[str]:
        """Of nodes those that Slurm has not switched off; says which it has."""
        for finding in said_of(self.away & {*names}, self.command(verb)):
            self.say(str(finding))
        return [name for name in names if name not in self.away]

    def request(
        self,
        name: str,
        generated: Path,
        variable_files: tuple[Path, ...] | None = None,
        options: Options | None = None,
    ) -> RunRequest:
        """What has ``playbooks/<name>.yml`` run; without variable files it looks, and never changes."""
        options = options or self.options
        arguments = options.connection()
        if variable_files is not None:
            arguments += options.playbook()
        for text in options.extra:
            absolute = f"@{Path(text[1:]).resolve()}" if text.startswith("@") else text
            arguments += ["--extra-vars", absolute]
        return RunRequest(
            playbook=playbook(name),
            inventories=(self.site.inventory, generated),
            variable_files=variable_files or (),
            arguments=tuple(arguments),
            environment=ansible_environment(self.settings),
            connection_password=options.connection_password,
            become_password=options.become_password,
        )

    def answers(self, request: RunRequest, asked: Iterable[str]) -> dict[str, HostResult]:
        """The result of every host in a playbook of one task that only looks; nothing is shown or recorded.

        Raises DeployError ``hosts-not-asked`` when Ansible itself cannot run it.
        """
        events: list[Event] = []
        with signals_cancel(self.cancellation):
            execute(request, events.append, self.cancellation, self.ansible)
        self.refuse_silence(events, asked)
        return {event.host: event for event in events if isinstance(event, HostResult)}

    def refuse_silence(
        self, events: Iterable[Event], asked: Iterable[str], exit_code: ExitCode | None = None
    ) -> None:
        """Raises KeyboardInterrupt when the asking was interrupted, else DeployError ``hosts-not-asked``.

        That is when Ansible itself could not run; a host that gives no answer is no such thing. ``exit_code``
        is that of the run where none is given.
        """
        summary = summarize(events, asked)
        if summary.outcome is Outcome.INTERRUPTED:
            raise KeyboardInterrupt
        if summary.trouble:
            raise error(
                "hosts-not-asked",
                "Ansible could not ask the hosts: " + " ".join(summary.trouble),
                where=str(self.site.inventory),
                hint=f"ansible -i {self.inventory} all -m ping",
                exit_code=exit_code or summary.exit_code,
            )


@contextmanager
def opened(inventory: Path, options: Options, *, needs_ansible: bool = True) -> Iterator[Run]:
    """Reads and checks a site. Raises DeployError when it is wrong, before the first connection."""
    settings = options.settings
    if unknown := [] if options.is_whole else unknown_tags(options.tags, options.skip_tags):
        raise error(
            "invalid-option",
            f"no task has the tag {', '.join(unknown)}",
            where="--tags" if words(options.tags) & {*unknown} else "--skip-tags",
            hint="name a role, as in --tags slurmctld, or what its phase is called in playbooks/cluster.yml",
        )
    variables = read_extra_variables(options.extra)
    early = EarlyStart(
        ansible_environment(settings),
        existing_inventory(inventory),
        at_once=needs_ansible,
        is_served=not settings.plain,
    )
    with early as ansible, private_place() as place:
        vault = options.vault_password_file
        with ThreadPoolExecutor(1) as beside:
            # The checks want it; while Ansible reads the inventory there is time.
            beside.submit(load_judges)
            site = read_site(
                inventory, vault_password_file=vault, extra_variables=variables, under_way=options.listing
            )
        warnings = tuple(check_site(site, vault))
        if clashes := sorted(port_clashes(site.resolved, read_contract(site))):
            raise DeployError(*clashes)
        named = _limited(site, options)
        run = Run(site, options, settings, place, named, ansible, named=named).narrowed()
        warnings += said_of(run.away, run.again())
        yield replace(run, warnings=warnings)


def _limited(site: Site, options: Options) -> frozenset[str] | None:
    """The hosts that ``--limit`` names. Raises DeployError ``limit-matches-nothing``."""
    if options.limit is None:
        return None
    limit = ",".join(_patterns(options.limit, site))
    chosen = read_site(site.inventory, limit=limit, vault_password_file=options.vault_password_file)
    unknown = [said[1] for warning in chosen.warnings if (said := _UNMATCHED.search(warning.message))]
    if unknown:
        raise _no_match(site, f"--limit {options.limit!r} names what no host is called: {', '.join(unknown)}")
    hosts = frozenset(chosen.hosts) & {host.name for host in site.cluster}
    if not hosts:
        raise _no_match(site, f"--limit {options.limit!r} matches no host of the cluster")
    return hosts


def _patterns(limit: str, site: Site) -> list[str]:
    """The patterns of --limit, those of a file (``@FILE``) among them."""
    found: list[str] = []
    for part in unfold(limit, site.hosts):
        try:
            lines = Path(part[1:]).read_text(encoding="utf-8").split() if part.startswith("@") else [part]
        except (OSError, UnicodeDecodeError) as problem:
            raise _no_match(site, f"--limit {part!r} cannot be read: {problem}") from None
        if not lines:
            raise _no_match(site, f"--limit {part!r} names no host: the file is empty")
        found += lines
    if not any(found):
        raise _no_match(site, f"--limit {limit!r} names no host")
    return found


def _no_match(site: Site, message: str) -> DeployError:
    return error(
        "limit-matches-nothing",
        message,
        where=shown_path(site.inventory),
        hint=f"list the hosts with: ansible-inventory -i {shown_path(site.inventory)} --graph",
    )
