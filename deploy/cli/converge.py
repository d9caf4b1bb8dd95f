"""A site becomes a cluster: read, check, plan, run, show."""

import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy import __version__
from deploy.cli.options import Options
from deploy.cli.playbook_run import limited, run_request, shown_path
from deploy.plan.build import build_plan
from deploy.plan.wiring import write_discovery, write_wiring
from deploy.run.cancellation import signals_cancel
from deploy.run.events import Event, HostResult
from deploy.run.execute import Execution, RunRequest, execute
from deploy.run.journal import Journal, state_directory
from deploy.run.lock import site_lock
from deploy.run.settings import Settings
from deploy.show.display import Display
from deploy.show.summary import Outcome, Summary, summarize
from deploy.site.checks import check_site
from deploy.site.hardware import keep, read_contract, undiscovered
from deploy.site.inventory import Site, read_site
from deploy.site.secrets import fill_secrets, secrets_file
from deploy.site.variables import read_extra_variables


def deploy_cluster(inventory: Path, options: Options, display: Display) -> Summary:
    """Everything behind the verb; raises DeployError before anything changes when the site is wrong."""
    variables = read_extra_variables(options.extra)
    site = read_site(inventory, vault_password_file=options.vault_password_file, extra_variables=variables)
    for warning in check_site(site, options.vault_password_file):
        sys.stderr.write(f"deploy: {warning}\n")
    limit = limited(site, options)
    with site_lock(state_directory(site.directory)), tempfile.TemporaryDirectory(prefix="deploy-") as name:
        run = ClusterRun(site, options, Path(name), limit)
        return run.run(display)


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
            display.start(f"deploy cluster {shown_path(self.site.inventory)}", plan.hosts)
            contract = self._contract(events, lambda request: execute(request, on_event, cancellation))
            unknown = {node.name for node in undiscovered(self.site, contract)}
            plan = build_plan(self.site, limit=self.limit, unknown=unknown)
            wiring = journal.path / "wiring.json"
            write_wiring(wiring, self.site, plan, contract)
            execute(self._request("cluster", wiring, len(plan.hosts), variable_files), on_event, cancellation)
            summary = summarize(events, plan.hosts, started=journal.started)
            journal.finish(converged=self._converged(summary))
            display.finish(summary, self._hint(summary))
        return summary

    def _converged(self, summary: Summary) -> list[str]:
        """The hosts on which every task of the whole cluster succeeded."""
        if self.options.check or self.options.tags or self.options.skip_tags:
            return []
        return [
            name
            for name, host in summary.hosts.items()
            if host.is_good and (self.limit is None or name in self.limit)
        ]

    def _secrets(self) -> tuple[Path, ...]:
        """Files that hold the secrets; a check makes none, so a site without them borrows some."""
        path = secrets_file(self.site)
        if not self.options.check:
            fill_secrets(self.site, self.options.vault_password_file)
            return (path,) if path.exists() else ()
        borrowed = self.place / "secrets.yml"
        fill_secrets(self.site, self.options.vault_password_file, borrowed)
        return tuple(file for file in (borrowed, path) if file.exists())

    def _contract(
        self, events: list[Event], run: Callable[[RunRequest], Execution]
    ) -> dict[str, dict[str, Any]]:
        """The hardware contract, completed by asking the nodes it says nothing of yet."""
        contract = read_contract(self.site)
        missing = [n for n in undiscovered(self.site, contract) if self.limit is None or n.name in self.limit]
        if not missing:
            return contract
        source = self.place / "discover.json"
        write_discovery(source, missing)
        run(self._request("discover", source, len(missing)))
        found = {e.host: e.answer for e in events if isinstance(e, HostResult) and e.answer is not None}
        if self.options.check:
            return {**contract, **{name: dict(hardware) for name, hardware in found.items()}}
        keep(self.site, found)
        return read_contract(self.site)

    def _request(
        self, name: str, generated: Path, hosts: int, variable_files: tuple[Path, ...] | None = None
    ) -> RunRequest:
        return run_request(
            name,
            generated,
            site=self.site,
            options=self.options,
            settings=Settings(hosts=hosts, forks=self.options.forks),
            variable_files=variable_files,
        )

    def _hint(self, summary: Summary) -> str:
        inventory = shown_path(self.site.inventory)
        again = f"deploy cluster {inventory}"
        match summary.outcome:
            case Outcome.CONVERGED if self.options.check:
                return again
            case Outcome.CONVERGED:
                return f"deploy report {inventory}"
            case Outcome.UNREACHABLE:
                lost = [name for name, host in summary.hosts.items() if host.unreachable]
                return f"{again} --limit {','.join(lost)}   (when they answer again)"
            case Outcome.FAILED | Outcome.INTERRUPTED:
                return f"{again}   (run it again; what happened: deploy report {inventory})"
