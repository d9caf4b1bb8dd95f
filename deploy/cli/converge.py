"""A site becomes a cluster: read, check, foretell, ask where jobs would be lost, run, show."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deploy import __version__
from deploy.cli.members import Known, Members
from deploy.cli.options import Options
from deploy.cli.playbook_run import limited, open_site, run_request, shown_path
from deploy.cli.recording import Recording
from deploy.cli.records import Records, login_of
from deploy.errors import DeployError, ExitCode, Finding, error
from deploy.judge.departed import Departed, left_over_events
from deploy.judge.findings import findings_of, is_refused, with_findings
from deploy.judge.forecast import Forecast, forecast_of
from deploy.judge.foretold import Foretold
from deploy.judge.moved_controller import moved_controller, with_move
from deploy.judge.served import is_new_cluster
from deploy.judge.summary import Outcome, Summary, summarize
from deploy.judge.unfinished import Phases
from deploy.judge.version_skew import version_skew
from deploy.place import private_place
from deploy.plan.build import Plan, build_plan
from deploy.plan.catalog import prerequisites
from deploy.plan.known_secrets import known_secrets, new_secrets
from deploy.plan.wiring import write_discovery, write_wiring
from deploy.run.cancellation import Cancellation, signals_cancel
from deploy.run.cluster_lock import cluster_lock
from deploy.run.events import (
    Event,
    HostResult,
    Level,
    Notice,
    Planned,
    PlannedPhase,
    PlayStarted,
    TaskStarted,
)
from deploy.run.execute import EarlyStart, RunRequest, execute
from deploy.run.journal import Journal, last_run, state_directory
from deploy.run.lock import site_lock
from deploy.run.settings import Settings
from deploy.show.display import Display
from deploy.site.hardware import keep, read_contract, undiscovered
from deploy.site.inventory import Site, site_directory
from deploy.site.node_lists import all_but, fold
from deploy.site.secrets import fill_secrets, missing_secrets, secrets_file

Agree = Callable[[Forecast, str], None]
"""Asks whoever may decide; raises DeployError ``would-lose-jobs`` when the answer is not yes."""

# In a plan that is about to be carried out, what check mode needs may be put in place already.
_PREPARES = '{"bootstrap_check_mode_prepares": true}'
# Without it the role itself refuses, whoever runs it and whatever the plan could not see.
_AGREED = '{"slurmctld_may_lose_jobs": true}'


def deploy_cluster(inventory: Path, options: Options, display: Display, agree: Agree) -> Summary:
    """Everything behind the verb; raises DeployError before anything changes when the site is wrong."""
    with _site_run(inventory, options) as run, site_lock(state_directory(run.site.directory)):
        _refuse_new_secrets_for_some(run.site, options)
        return run.converge(display, agree)


def plan_cluster(inventory: Path, options: Options, display: Display) -> Foretold:
    """What ``deploy_cluster`` would do; changes nothing, neither on hosts nor in the site."""
    with _site_run(inventory, options) as run:
        return run.foretell(display)


@contextmanager
def _site_run(inventory: Path, options: Options) -> Iterator["ClusterRun"]:
    settings = Settings(forks=options.forks)
    with (
        open_site(inventory, options, settings, needs_ansible=_is_work_likely(inventory, options)) as opened,
        private_place() as place,
    ):
        for warning in opened.warnings:
            sys.stderr.write(f"deploy: {warning}\n")
        site = opened.site
        yield ClusterRun(site, options, place, limited(site, options), opened.ansible)


def _is_work_likely(inventory: Path, options: Options) -> bool:
    """Whether Ansible will be needed; started for nothing, it would cost a second."""
    last = last_run(site_directory(inventory))
    is_settled = last is not None and last.is_complete and set(last.converged) == set(last.hosts)
    return options.full or not options.is_whole or not is_settled


@dataclass(frozen=True)
class Looked:
    """What hosts ``said`` of themselves; which hosts controllers know, and those of them that left."""

    said: Mapping[str, Any]
    known: Mapping[str, Known]
    departed: Future[list[Departed]]


@dataclass(frozen=True)
class Work:
    """What is to be done, by the contract it was planned with, and the inventory source that says so."""

    plan: Plan
    contract: dict[str, dict[str, Any]]
    wiring: Path
    repairs: dict[str, dict[str, Any]]
    """By host variables for this run alone."""
    unrecorded: dict[str, tuple[str, ...]]
    """Phases of which hosts said that they have no record."""
    held: dict[str, frozenset[str]]
    """Phases of which hosts said that they are as recorded."""
    left: dict[str, tuple[str, ...]]
    """What hosts have, in words, that was managed once and is managed no more."""
    looked: "Looked"


@dataclass(frozen=True)
class ClusterRun:
    """One run on a site; ``place`` is a private directory that vanishes with it."""

    site: Site
    options: Options
    place: Path
    limit: frozenset[str] | None
    ansible: EarlyStart

    def converge(self, display: Display, agree: Agree) -> Summary:
        """Completes secrets and contract; then runs what is to be done, journalled and shown."""
        hosts = build_plan(self.site, limit=self.limit).hosts
        events: list[Event] = []

        def on_answer(event: Event) -> None:
            events.append(event)
            display.event(event)

        started = time.time()
        with (
            signals_cancel() as cancellation,
            closing(display),
            ThreadPoolExecutor(1) as meanwhile,
            ExitStack() as held,
        ):
            display.start(self._command, hosts)
            asked = meanwhile.submit(self._verify, hosts, meanwhile)
            contract, is_new = self._contract(on_answer, cancellation)
            self._refuse_skew(events)
            work = self._work(contract, asked, on_answer, cancellation)
            passed: list[Event] = []
            options = self.options
            is_to_run = bool(work.plan.steps) and not is_refused(events) and not _broke(events)
            changes = is_to_run and not self.options.check
            held.enter_context(self._cluster_lock(on_answer, cancellation, is_needed=changes))
            # Where nothing is yet, there are no jobs that could be lost, and no secrets that hosts go by.
            if changes and not is_new:
                passed, options = self._plan_first(work, display, agree, cancellation)
            renews = changes and not (passed and self.options.full)
            recorded = self._known_records(without=work.plan.hosts if renews else ())
            # Only now: what was refused never was a run.
            journal = Journal.create(self.site.directory, self._metadata(hosts, started))
            with journal.keeps_faults():
                (journal.path / work.wiring.name).write_bytes(work.wiring.read_bytes())
                events += passed
                for event in events:
                    journal.append(event)

                def on_event(event: Event) -> None:
                    journal.append(event)
                    on_answer(event)

                def on_event_of_run(event: Event) -> None:
                    on_event(event)
                    if self._keeps_records:
                        recording.go_on(events)

                with Recording.of(
                    self._records, work.contract, work.plan, held=work.held, known=recorded
                ) as recording:
                    if is_to_run and not passed:
                        self._run(work, options, on_event_of_run, cancellation)
                    self.ansible.dismiss()
                    summary = summarize(events, hosts, started=started)
                    is_done = summary.outcome is not Outcome.INTERRUPTED and not is_refused(events)
                    if is_to_run and is_done and self._keeps_records:
                        answering = [name for name, host in summary.hosts.items() if not host.unreachable]
                        written = recording.finish(events, answering)
                        recorded |= written.digests
                        for notice in written.notices:
                            on_event(notice)
                        work.left.update(written.left)
                summary = self._with_left_over(summary, work, on_event)
                journal.finish(converged=self._converged(summary), recorded=recorded)
                display.finish(summary, self._hint(summary, is_refused=is_refused(events)))
        _refuse_unknown_secrets(events)
        return summary

    @contextmanager
    def _cluster_lock(
        self, on_event: Callable[[Event], None], cancellation: Cancellation, *, is_needed: bool
    ) -> Iterator[None]:
        """Nobody else changes the cluster meanwhile. Raises DeployError ``cluster-locked``."""

        def on_lost(controller: str) -> None:
            sys.stderr.write(f"\ndeploy: {controller}: the connection that holds the cluster's lock ended\n")
            cancellation.ask()

        controllers = self.site.controllers if is_needed else ()
        with cluster_lock(controllers, login_of(self.options), self.site.directory, on_lost) as unasked:
            for why in unasked:
                message = f"no lock, so nothing keeps a run from another machine away: {why}"
                on_event(Notice(time.time(), Level.WARNING, message))
            yield

    def _work(
        self,
        contract: dict[str, dict[str, Any]],
        asked: Future[Looked],
        on_event: Callable[[Event], None],
        cancellation: Cancellation,
    ) -> "Work":
        """What is to be done: everything, but for what hosts were asked about and is as it was left."""
        plan = build_plan(self.site, contract, limit=self.limit)
        current: dict[str, frozenset[str]] = {}
        repairs: dict[str, dict[str, Any]] = {}
        unrecorded: dict[str, tuple[str, ...]] = {}
        done: dict[str, frozenset[str]] = {}
        left: dict[str, tuple[str, ...]] = {}
        looked = asked.result()
        if self._goes_by_records and not cancellation.is_asked:
            states, events = self._records.states(contract, looked.said)
            for event in events:
                on_event(event)
            done = {name: state.converged for name, state in states.items()}
            plan = build_plan(self.site, contract, limit=self.limit, converged=done)
            current = {name: state.current for name, state in states.items()}
            repairs = {name: state.repairs for name, state in states.items() if state.repairs}
            unrecorded = {name: state.unrecorded for name, state in states.items() if not state.why}
            left = {name: state.left for name, state in states.items() if not state.why}
        replaces = self.options.new_secrets
        of_secrets = new_secrets(self.site) if replaces else known_secrets(self.site, contract, current)
        repairs = {name: repairs.get(name, {}) | of_secrets.get(name, {}) for name in self.site.hosts}
        wiring = self.place / "wiring.json"
        write_wiring(wiring, self.site, plan, contract, repairs)
        return Work(plan, contract, wiring, repairs, unrecorded, done, left, looked)

    def _run(
        self,
        work: "Work",
        options: Options,
        on_event: Callable[[Event], None],
        cancellation: Cancellation,
    ) -> None:
        secrets = self._secrets()
        if not options.check:
            self._members.remember(work.looked.known, work.plan.hosts)
            self._records.forget(work.plan, work.unrecorded)
        self._apply("cluster", work, on_event, cancellation, variable_files=secrets, options=options)

    def _apply(
        self,
        playbook: str,
        work: "Work",
        on_event: Callable[[Event], None],
        cancellation: Cancellation,
        *,
        variable_files: tuple[Path, ...],
        options: Options,
    ) -> None:
        """Runs the plan's phases; after a failure, also those that it does not stand in the way of.

        Ansible leaves hosts out of all plays after one that failed there, and ends the playbook when a play
        failed on all of its hosts.
        """
        phases = Phases()

        def on_each(event: Event) -> None:
            phases.take(event)
            on_event(event)

        on_each(_planned(work.plan))
        wiring = work.wiring
        left: dict[str, tuple[str, ...]] = {}
        while True:
            request = self._request(playbook, wiring, variable_files, options)
            execution = execute(request, on_each, cancellation, self.ansible)
            before, left = left, phases.open()
            if not left or left == before or phases.is_refused or not execution.came_to_its_end:
                return
            wiring = self.place / "left.json"
            write_wiring(wiring, self.site, work.plan.only(left), work.contract, work.repairs)

    def _known_records(self, *, without: tuple[str, ...]) -> dict[str, str]:
        """By host what is known of its records: a digest of all of them, as this site wrote them last."""
        last = last_run(self.site.directory)
        known = last.recorded if last else {}
        return {name: of for name, of in known.items() if name in self.site.hosts and name not in without}

    @property
    def _command(self) -> str:
        """What was typed, to be typed again."""
        return f"deploy cluster {shown_path(self.site.inventory)}"

    @property
    def _keeps_records(self) -> bool:
        """Whether what runs tells that phases are converged: whole ones, really done."""
        return self.options.is_whole and not self.options.check

    @property
    def _goes_by_records(self) -> bool:
        return self.options.is_whole and not self.options.full

    def _verify(self, hosts: tuple[str, ...], meanwhile: ThreadPoolExecutor) -> Looked:
        """What the hosts say of their records; asked while new nodes are asked what they have.

        Controllers are always asked: they know which hosts the cluster had.
        """
        controllers = [host.name for host in self.site.controllers]
        asked = [*hosts, *controllers] if self._goes_by_records else controllers
        said = self._records.verify(dict.fromkeys(asked))
        known = self._members.known(said)
        return Looked(said, known, meanwhile.submit(self._members.departed, known))

    def _with_left_over(self, summary: Summary, work: Work, on_event: Callable[[Event], None]) -> Summary:
        """Names what is there and not in the inventory any more: hosts, and things on hosts."""
        departed, left = work.looked.departed.result(), work.left
        if self.options.is_whole:
            unheard = [name for name, host in summary.hosts.items() if host.is_good and name not in left]
            left = {**left, **self._records.left_over(unheard)}
        found = tuple(left_over_events(left, departed, shown_path(self.site.inventory)))
        for event in found:
            on_event(event)
        if not self.options.check:
            gone = [host.name for host in departed if host.is_gone]
            self._members.remember(work.looked.known, summary.hosts, gone)
        return replace(summary, left_over=found)

    @property
    def _records(self) -> Records:
        return Records(self.site, self.options)

    @property
    def _members(self) -> Members:
        return Members(self.site, self.options)

    def _plan_first(
        self,
        work: "Work",
        display: Display,
        agree: Agree,
        cancellation: Cancellation,
    ) -> tuple[list[Event], Options]:
        """The plan's events when they are the whole run, else none; and the options to go on with."""
        hosts = work.plan.hosts
        prepared = replace(self.options, extra=(*self.options.extra, _PREPARES))
        secrets = self._borrowed_secrets()
        forecast, events = self._foretell(prepared, work, secrets, display, cancellation)
        looked = summarize(events, hosts)
        is_over = is_refused(events) or bool(looked.trouble) or cancellation.is_asked
        if is_over or _is_nothing_to_do(looked):
            for result in with_findings(events):
                display.event(result)
            return events, self.options
        display.plan(forecast)
        if not forecast.needs_consent:
            return [], self.options
        display.close()
        agree(forecast, self._command)
        display.start(self._command, hosts)
        return [], replace(self.options, extra=(*self.options.extra, _AGREED))

    def foretell(self, display: Display) -> Foretold:
        """What ``converge`` would do."""
        started = time.time()
        variable_files = self._borrowed_secrets()
        hosts = build_plan(self.site, limit=self.limit).hosts
        told: list[Event] = []
        with signals_cancel() as cancellation, closing(display), ThreadPoolExecutor(1) as meanwhile:
            display.start(f"deploy plan {shown_path(self.site.inventory)}", hosts)
            asked = meanwhile.submit(self._verify, hosts, meanwhile)
            contract, _ = self._contract(told.append, cancellation, keeps=False)
            work = self._work(contract, asked, told.append, cancellation)
            before = forecast = forecast_of(told)
            if work.plan.steps and not _broke(told):
                forecast, events = self._foretell(self.options, work, variable_files, display, cancellation)
                failures = (*before.failures, *forecast.failures)
                forecast = replace(forecast, drift=before.drift, failures=failures)
                told += events
            departed = work.looked.departed.result()
            told += left_over_events(work.left, departed, shown_path(self.site.inventory))
        return Foretold(forecast, summarize(told, hosts, started=started))

    def _foretell(
        self,
        options: Options,
        work: Work,
        variable_files: tuple[Path, ...],
        display: Display,
        cancellation: Cancellation,
    ) -> tuple[Forecast, list[Event]]:
        """Runs the plan in check mode; of its events only the progress is shown."""
        events: list[Event] = []

        def on_event(event: Event) -> None:
            events.append(event)
            if isinstance(event, TaskStarted | PlayStarted):
                display.progress(event)

        looking = replace(options, check=True, diff=True)
        self._apply("plan", work, on_event, cancellation, variable_files=variable_files, options=looking)
        self._refuse_skew(events)
        _refuse_unknown_secrets(events)
        forecast, moved = forecast_of(events), moved_controller(events, self.site)
        return (with_move(forecast, moved, self._members.queue(moved)) if moved else forecast), events

    def _refuse_skew(self, events: list[Event]) -> None:
        """Raises DeployError when hosts have releases of Slurm that do not work together."""
        found = version_skew(events, [master.name for master in self.site.controllers])
        if found:
            raise DeployError(*found, exit_code=ExitCode.FAILED)

    def _metadata(self, hosts: tuple[str, ...], started: float) -> dict[str, Any]:
        return {
            "started": started,
            "verb": "cluster",
            "version": __version__,
            "inventory": str(self.site.inventory),
            "arguments": sys.argv[1:],
            "hosts": list(hosts),
            "check": self.options.check,
        }

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
        """The file that holds the site's secrets, completed."""
        if self.options.check:
            return self._borrowed_secrets()
        path = secrets_file(self.site)
        fill_secrets(self.site, self.options.vault_password_file)
        return (path,) if path.exists() else ()

    def _borrowed_secrets(self) -> tuple[Path, ...]:
        """The site's secrets; what is missing there is made up, and forgotten with this run."""
        path, borrowed = secrets_file(self.site), self.place / "secrets.yml"
        fill_secrets(self.site, self.options.vault_password_file, borrowed)
        return tuple(file for file in (borrowed, path) if file.exists())

    def _contract(
        self, on_event: Callable[[Event], None], cancellation: Cancellation, *, keeps: bool = True
    ) -> tuple[dict[str, dict[str, Any]], bool]:
        """The hardware contract, completed by asking the nodes it says nothing of yet.

        Also whether all machines were asked, and none is of a cluster yet.
        """
        contract = read_contract(self.site)
        missing = [n for n in undiscovered(self.site, contract) if self.limit is None or n.name in self.limit]
        if not missing:
            return contract, False
        results: list[HostResult] = []

        def on_answer(event: Event) -> None:
            results.extend([event] if isinstance(event, HostResult) else [])
            on_event(event)

        source = self.place / "discover.json"
        plan = build_plan(self.site, contract, limit=self.limit)
        write_discovery(source, self.site, plan, contract, missing)
        execute(self._request("discover", source), on_answer, cancellation, self.ansible)
        found = {r.host: r.answer["hardware"] for r in results if r.answer and "hardware" in r.answer}
        is_new = not contract and is_new_cluster(results)
        if self.options.check or not keeps or not found:
            return {**contract, **{name: dict(hardware) for name, hardware in found.items()}}, is_new
        keep(self.site, found)
        return read_contract(self.site), is_new

    def _request(
        self,
        name: str,
        generated: Path,
        variable_files: tuple[Path, ...] | None = None,
        options: Options | None = None,
    ) -> RunRequest:
        """A run of ``playbooks/<name>.yml``; without variable files it looks, and never changes."""
        options = options or self.options
        return run_request(
            name,
            generated,
            site=self.site,
            options=options,
            settings=Settings(forks=options.forks),
            variable_files=variable_files,
        )

    def _hint(self, summary: Summary, *, is_refused: bool) -> str:
        inventory = shown_path(self.site.inventory)
        if is_refused:
            unfit = [name for name, host in summary.hosts.items() if host.failed]
            return (
                f"deploy check {inventory}   (when this is mended; to go on without: "
                f"deploy cluster {inventory} --limit '{all_but(unfit)}')"
            )
        again = self._command + " --new-secrets" * self.options.new_secrets
        match summary.outcome:
            case Outcome.CONVERGED if self.options.check:
                return again
            case Outcome.CONVERGED:
                return f"deploy report {inventory}"
            case Outcome.UNREACHABLE:
                lost = [name for name, host in summary.hosts.items() if host.unreachable]
                return f"{again} --limit '{fold(lost)}'   (when they answer again)"
            case Outcome.FAILED | Outcome.INTERRUPTED:
                return f"{again}   (run it again; what happened: deploy report {inventory})"


def _refuse_new_secrets_for_some(site: Site, options: Options) -> None:
    """Raises DeployError ``new-secrets-limited``: hosts with different keys are no cluster."""
    missing = missing_secrets(site, options.vault_password_file)
    if missing and options.new_secrets and options.limit:
        raise error(
            "new-secrets-limited",
            f"{', '.join(missing)} would be made anew for some hosts only, and no other would know it",
            where=shown_path(secrets_file(site)),
            hint=f"deploy cluster {shown_path(site.inventory)} --new-secrets   (without --limit)",
        )


def _refuse_unknown_secrets(events: list[Event]) -> None:
    """Raises DeployError ``unknown-secret`` where hosts have other secrets than this site."""
    hosts: dict[Finding, list[str]] = {}
    for result in with_findings(events):
        for finding in findings_of(result):
            if finding.reference == "unknown-secret":
                hosts.setdefault(replace(finding, where=""), []).append(finding.where)
    if hosts:
        raise DeployError(*(replace(finding, where=fold(names)) for finding, names in hosts.items()))


def _broke(events: list[Event]) -> bool:
    """Whether Ansible broke outside of any task: what it would have said next, nobody knows."""
    return bool(summarize(events, ()).trouble)


def _is_nothing_to_do(looked: Summary) -> bool:
    """Whether a run in check mode came to its end and would change nothing; hosts may be unreachable."""
    is_whole = all(host.unreachable or not host.not_run for host in looked.hosts.values())
    return looked.changed == 0 and is_whole and looked.outcome in {Outcome.CONVERGED, Outcome.UNREACHABLE}


def _planned(plan: Plan) -> Planned:
    phases = (
        PlannedPhase(phase.name, phase.title, step.hosts, prerequisites(phase.name), phase.after_everywhere)
        for step in plan.steps
        for phase in (step.phase,)
    )
    return Planned(time.time(), tuple(phases))
