"""``deploy cluster``: read, check, plan, run, show."""

import getpass
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from deploy import __version__
from deploy.content import playbook
from deploy.plan.build import build_plan
from deploy.plan.wiring import write_discovery, write_wiring
from deploy.run.cancellation import signals_cancel
from deploy.run.events import Event
from deploy.run.execute import Execution, RunRequest, execute
from deploy.run.journal import Journal, state_directory
from deploy.run.lock import site_lock
from deploy.run.settings import Settings, ansible_environment
from deploy.show.display import Display
from deploy.show.jsonl import JsonlDisplay
from deploy.show.live import LiveDisplay
from deploy.show.plain import PlainDisplay
from deploy.show.summary import Outcome, Summary, summarize
from deploy.site.checks import check_site
from deploy.site.hardware import keep, read_contract, read_discovered, undiscovered
from deploy.site.inventory import Site, read_site
from deploy.site.secrets import fill_secrets, secrets_file
from deploy.site.variables import read_extra_variables


class Output(StrEnum):
    """How a run is shown."""

    LIVE = "live"
    PLAIN = "plain"
    JSONL = "jsonl"


@dataclass(frozen=True)
class Options:
    """What the admin typed behind ``deploy cluster INVENTORY``."""

    limit: str | None
    tags: str | None
    skip_tags: str | None
    check: bool
    diff: bool
    user: str | None
    private_key: Path | None
    forks: int | None
    extra: tuple[str, ...]
    verbose: int
    vault_password_file: Path | None
    connection_password: str | None
    become_password: str | None

    def connection(self) -> list[str]:
        """The options of ansible-playbook that say how hosts are reached."""
        given: list[str] = []
        for option, value in (
            ("--user", self.user),
            ("--private-key", self.private_key),
            ("--vault-password-file", self.vault_password_file),
        ):
            if value is not None:
                given += [option, str(value)]
        return given

    def playbook(self) -> list[str]:
        """The options of ansible-playbook that say what is done."""
        given: list[str] = []
        for option, value in (("--tags", self.tags), ("--skip-tags", self.skip_tags)):
            if value is not None:
                given += [option, value]
        given += ["--check"] * self.check + ["--diff"] * self.diff
        return given + ["-" + "v" * self.verbose] * bool(self.verbose)


def cluster(
    inventory: Annotated[Path, typer.Argument(help="An Ansible inventory: a file, or a directory of them.")],
    *,
    limit: Annotated[
        str | None, typer.Option("--limit", "-l", help="Only these hosts, and what the controller must know.")
    ] = None,
    tags: Annotated[str | None, typer.Option("--tags", "-t", help="Only tasks with these tags.")] = None,
    skip_tags: Annotated[str | None, typer.Option(help="All tasks but those with these tags.")] = None,
    check: Annotated[
        bool, typer.Option("--check", "-C", help="Say what would change; change nothing.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", "-D", help="Show how files change.")] = False,
    user: Annotated[str | None, typer.Option("--user", "-u", help="Log in as this user.")] = None,
    private_key: Annotated[
        Path | None, typer.Option("--private-key", "--key-file", help="Log in with this SSH key.")
    ] = None,
    ask_pass: Annotated[bool, typer.Option("--ask-pass", "-k", help="Ask for the login password.")] = False,
    ask_become_pass: Annotated[
        bool, typer.Option("--ask-become-pass", "-K", help="Ask for the sudo password.")
    ] = False,
    forks: Annotated[int | None, typer.Option("--forks", "-f", min=1, help="Hosts at once.")] = None,
    extra: Annotated[
        list[str] | None, typer.Option("--extra-vars", "-e", help="name=value, JSON, or @file.")
    ] = None,
    verbose: Annotated[int, typer.Option("--verbose", "-v", count=True, help="More; repeat for more.")] = 0,
    vault_password_file: Annotated[
        Path | None, typer.Option(help="Password of vaulted variables and of secrets.yml.")
    ] = None,
    output: Annotated[
        Output | None, typer.Option(help="live on a terminal, else plain; jsonl for programs.")
    ] = None,
) -> None:
    """Turn the machines of an inventory into a cluster, or bring it up to date.

    Running it again is always safe: what is as it should be stays untouched, and so do running jobs.

    Examples:
      deploy cluster inventory.ini

      deploy cluster inventory.ini --check --diff

      deploy cluster inventory.ini --limit node3

    """
    options = Options(
        limit=limit,
        tags=tags,
        skip_tags=skip_tags,
        check=check,
        diff=diff,
        user=user,
        private_key=private_key,
        forks=forks,
        extra=tuple(extra or ()),
        verbose=verbose,
        vault_password_file=vault_password_file,
        connection_password=getpass.getpass("SSH password: ") if ask_pass else None,
        become_password=getpass.getpass("sudo password: ") if ask_become_pass else None,
    )
    shown_as = output or (Output.LIVE if sys.stdout.isatty() else Output.PLAIN)
    raise typer.Exit(deploy_cluster(inventory, options, display_for(shown_as, options)).exit_code)


def display_for(output: Output, options: Options) -> Display:
    """The display that was asked for, on standard output."""
    match output:
        case Output.LIVE:
            return LiveDisplay(Console(), verbose=bool(options.verbose), diff=options.diff)
        case Output.PLAIN:
            return PlainDisplay(_print, verbose=bool(options.verbose), diff=options.diff)
        case Output.JSONL:
            return JsonlDisplay(_print)


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - standard output is where a run is shown


def deploy_cluster(inventory: Path, options: Options, display: Display) -> Summary:
    """Everything behind the verb; raises DeployError before anything changes when the site is wrong."""
    variables = read_extra_variables(options.extra)
    site = read_site(inventory, vault_password_file=options.vault_password_file, extra_variables=variables)
    check_site(site, options.vault_password_file)
    limit = _limited(site, options)
    with site_lock(state_directory(site.directory)), tempfile.TemporaryDirectory(prefix="deploy-") as name:
        run = ClusterRun(site, options, Path(name), limit)
        return run.run(display)


def _limited(site: Site, options: Options) -> frozenset[str] | None:
    if options.limit is None:
        return None
    limited = read_site(site.inventory, limit=options.limit, vault_password_file=options.vault_password_file)
    return frozenset(limited.hosts)


@dataclass(frozen=True)
class ClusterRun:
    """One run of ``deploy cluster``; ``place`` is a private directory that vanishes with it."""

    site: Site
    options: Options
    place: Path
    limit: frozenset[str] | None

    def run(self, display: Display) -> Summary:
        """Completes secrets and contract, then runs the plan, journalled and shown."""
        variable_files = self._secrets()
        plan = build_plan(self.site, limit=self.limit)
        metadata = {
            "verb": "cluster",
            "version": __version__,
            "inventory": str(self.site.inventory),
            "arguments": sys.argv[1:],
            "hosts": list(plan.hosts),
            "check": self.options.check,
        }
        journal = Journal.create(self.site.directory, metadata)
        events: list[Event] = []

        def on_event(event: Event) -> None:
            events.append(event)
            journal.append(event)
            display.event(event)

        with signals_cancel() as cancellation, closing(display):
            display.start(f"deploy cluster {_shown(self.site.inventory)}", plan.hosts)
            contract = self._contract(lambda request: execute(request, on_event, cancellation))
            wiring = journal.path / "wiring.json"
            write_wiring(wiring, self.site, plan, contract)
            execute(self._request("cluster", wiring, len(plan.hosts), variable_files), on_event, cancellation)
            summary = summarize(events, plan.hosts, started=journal.started)
            journal.finish()
            display.finish(summary, self._hint(summary))
        return summary

    def _secrets(self) -> tuple[Path, ...]:
        """Files that hold the secrets; a check makes none, so a site without them borrows some."""
        path = secrets_file(self.site)
        if not self.options.check:
            fill_secrets(self.site, self.options.vault_password_file)
            return (path,) if path.exists() else ()
        borrowed = self.place / "secrets.yml"
        fill_secrets(self.site, self.options.vault_password_file, borrowed)
        return tuple(file for file in (borrowed, path) if file.exists())

    def _contract(self, run: Callable[[RunRequest], Execution]) -> dict[str, dict[str, Any]]:
        """The hardware contract, completed by asking the nodes it says nothing of yet."""
        contract = read_contract(self.site)
        missing = [n for n in undiscovered(self.site, contract) if self.limit is None or n.name in self.limit]
        if not missing:
            return contract
        answers = self.place / "hardware"
        answers.mkdir()
        source = self.place / "discover.json"
        write_discovery(source, missing, answers)
        run(self._request("discover", source, len(missing)))
        found = read_discovered(answers)
        if self.options.check:
            return {**contract, **{name: dict(hardware) for name, hardware in found.items()}}
        keep(self.site, found)
        return read_contract(self.site)

    def _request(
        self, name: str, generated: Path, hosts: int, variable_files: tuple[Path, ...] | None = None
    ) -> RunRequest:
        """A run of ``playbooks/<name>.yml``; without variable files it looks, and never changes."""
        arguments = self.options.connection()
        if variable_files is not None:
            arguments += self.options.playbook()
        for text in self.options.extra:
            absolute = f"@{Path(text[1:]).resolve()}" if text.startswith("@") else text
            arguments += ["--extra-vars", absolute]
        return RunRequest(
            playbook=playbook(name),
            inventories=(self.site.inventory, generated),
            variable_files=variable_files or (),
            arguments=tuple(arguments),
            environment=ansible_environment(Settings(hosts=hosts, forks=self.options.forks)),
            connection_password=self.options.connection_password,
            become_password=self.options.become_password,
        )

    def _hint(self, summary: Summary) -> str:
        inventory = _shown(self.site.inventory)
        match summary.outcome:
            case Outcome.CONVERGED if self.options.check:
                return f"to apply this: deploy cluster {inventory}"
            case Outcome.CONVERGED:
                return f"details: deploy report {inventory}"
            case Outcome.UNREACHABLE:
                lost = [name for name, host in summary.hosts.items() if host.unreachable]
                return f"when they answer again: deploy cluster {inventory} --limit {','.join(lost)}"
            case Outcome.FAILED | Outcome.INTERRUPTED:
                return f"run it again: deploy cluster {inventory}   what happened: deploy report {inventory}"


def _shown(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
