"""What ``deploy validate`` does: asks, has jobs run, judges."""

import time
from collections.abc import Callable, Collection
from pathlib import Path

from deploy.engine.alone import nodes_on
from deploy.engine.options import Options
from deploy.engine.powered_down import said_of
from deploy.engine.run import Run, opened
from deploy.errors import ExitCode, error
from deploy.judge.convergence import last_convergences
from deploy.judge.site_status import SiteStatus, site_status
from deploy.run.cancellation import signals_cancel
from deploy.run.events import Event, TaskStarted
from deploy.run.execute import RunRequest, execute
from deploy.run.journal import recorded_runs, state_directory
from deploy.run.lock import site_lock
from deploy.site.hardware import read_contract
from deploy.site.inventory import Site
from deploy.site.secrets import secrets_file
from deploy.validate.answers import JOBS, PORTAL, Answers, gathered
from deploy.validate.baseline import keep_baseline, read_baseline, with_regressions
from deploy.validate.catalog import CHECKS, LOAD, SLOW, Check, alone, judged, ordinary
from deploy.validate.context import Context, without_jobs
from deploy.validate.occupied import announced
from deploy.validate.programs.user import AT_WORK
from deploy.validate.questions import (
    Questions,
    write_host_questions,
    write_job_questions,
    write_questions,
)
from deploy.validate.record import keep
from deploy.validate.result import Outcome, Validation
from deploy.validate.thresholds import read_thresholds

_LOCK = "validation"
_HOUR = 3600

Say = Callable[[str], None]
"""Gets lines."""


def validate_site(
    inventory: Path,
    options: Options,
    checks: Collection[Check],
    *,
    is_quick: bool,
    burn_in_hours: float = 0.0,
    announce: Say = lambda _: None,
    progress: Say = lambda _: None,
) -> Validation:
    """Asks, runs the jobs, judges. Raises DeployError when the site is wrong or cannot be asked.

    ``announce`` hears of load that is put on nodes, ``progress`` what is done next.
    """
    began = time.time()
    with (
        opened(inventory, options) as whole,
        site_lock(state_directory(whole.site.directory), _LOCK),
        nodes_on(whole) as run,
    ):
        # Jobs that ask for nodes which are switched off would have them come.
        site, contract = run.site.without(run.away), read_contract(run.site)
        for finding in said_of(run.away, f"deploy validate {run.inventory}"):
            announce(str(finding))
        thresholds = read_thresholds(site.directory)
        kinds = {kind for check in checks for kind in check.kinds} - (SLOW if is_quick else set())
        kinds = kinds if site.nodes else kinds & {PORTAL}
        source = run.place / "questions.json"
        questions = write_questions(
            source, site, contract, kinds, thresholds=thresholds, burn_in_seconds=burn_in_hours * _HOUR
        )
        hours = burn_in_hours if LOAD in kinds else None
        answers = _ask(
            run, run.request("validate", source, monitoring_secrets(site)), hours, announce, progress
        )
        status = _status(run, answers, [host.name for host in site.cluster])
        context = Context(
            site, contract, questions, answers, status, thresholds, run.inventory, whole=run.site
        )
        state = state_directory(site.directory)
        found = with_regressions(judged(context, checks), read_baseline(state), thresholds)
        name, lost = (
            str(context.value("slurmctld_cluster_name")),
            [it.status.name for it in status.unreachable],
        )
        ended = Validation(name, began, time.time() - began, found, tuple(lost))
        if not ended.failed:
            keep_baseline(state, found)
        # With one of a few checks hardly anything could be compared.
        if {check.name for check in ordinary(CHECKS)} <= {check.name for check in checks}:
            keep(state, ended)
        return ended


def failing_checks(run: Run, names: Collection[str]) -> dict[str, tuple[str, ...]]:
    """By host what it fails of the checks that need no job, in words; nothing of one that passes them.

    Hosts are asked beside the controllers alone. Raises DeployError where they cannot be asked.
    """
    source = run.place / "hosts.json"
    asked = [host.name for host in run.site.cluster if host.name in {*names, *run.controllers}]
    questions = write_host_questions(source, run.site, read_contract(run.site), asked)
    checks = [check for check in CHECKS if check.of_a_host]
    return _failing(run, names, checks, questions, source)


def failing_jobs(
    run: Run, names: Collection[str], reservation: str, *, burn_in_hours: float = 0.0
) -> dict[str, tuple[str, ...]]:
    """By node what jobs of the validation user in a reservation find wrong there, in words.

    That no job could be started is wrong with all of them; that one had no room is not, as jobs of users run
    there then. Raises DeployError where hosts cannot be asked, or another validation is at work.
    """
    site, source = run.site, run.place / "jobs.json"
    checks = alone(is_loaded=burn_in_hours > 0)
    kinds = {kind for check in checks for kind in check.kinds}
    thresholds = read_thresholds(site.directory)
    with site_lock(state_directory(site.directory), _LOCK):
        questions = write_job_questions(
            source,
            site,
            read_contract(site),
            kinds,
            names,
            reservation=reservation,
            thresholds=thresholds,
            burn_in_seconds=burn_in_hours * _HOUR,
        )
        return _failing(run, names, checks, questions, source)


def _failing(
    run: Run,
    names: Collection[str],
    checks: Collection[Check],
    questions: Questions,
    source: Path,
) -> dict[str, tuple[str, ...]]:
    """By host of ``names`` what it fails of some checks, in words, when it and controllers are asked."""
    site, events = run.site, list[Event]()
    asked = [host.name for host in site.cluster if host.name in {*names, *run.controllers}]
    with signals_cancel(run.cancellation):
        execute(run.request("validate", source), events.append, run.cancellation, run.ansible)
    run.refuse_silence(events, asked)
    answers = gathered(events)
    refuse_second(answers)
    status, thresholds = _status(run, answers, asked), read_thresholds(site.directory)
    context = Context(site, read_contract(site), questions, answers, status, thresholds, run.inventory)
    if questions.plan is not None and answers.jobs is None:
        return dict.fromkeys(names, (without_jobs(context).message,))
    found: dict[str, tuple[str, ...]] = {}
    for check in judged(context, checks):
        # What is wrong with the whole is no fault of a host's.
        for result in check.of(Outcome.FAILED):
            for name in [result.where] if result.where in names else ():
                found[name] = (*found.get(name, ()), f"check {check.check}: {result.message}")
    return found


def monitoring_secrets(site: Site) -> tuple[Path, ...] | None:
    """How Prometheus is asked may name a secret of the site's."""
    path = secrets_file(site)
    return (path,) if site.metrics and path.exists() else None


def _ask(run: Run, request: RunRequest, burn_in_hours: float | None, announce: Say, progress: Say) -> Answers:
    """What hosts answered and jobs said; whom a burn-in will load is announced before."""
    events: list[Event] = []

    def take(event: Event) -> None:
        events.append(event)
        if isinstance(event, TaskStarted):
            progress(event.task)
            if event.step == JOBS and burn_in_hours is not None:
                told = gathered(events).told(run.controllers, "nodes")
                for line in announced(run.site, str((told or {}).get("out", "")), burn_in_hours):
                    announce(line)

    with signals_cancel(run.cancellation):
        execute(request, take, run.cancellation, run.ansible)
    run.refuse_silence(events, [host.name for host in run.site.cluster], ExitCode.BAD_INPUT)
    answers = gathered(events)
    refuse_second(answers)
    return answers


def _status(run: Run, answers: Answers, asked: Collection[str]) -> SiteStatus:
    return site_status(
        run.site,
        answers.states,
        last_convergences(recorded_runs(run.site.directory)),
        {},
        asked=asked,
        limit=None,
        inventory=run.inventory,
        at=time.time(),
    )


def refuse_second(answers: Answers) -> None:
    """Two at once would cancel each other's jobs. The other one is of another copy of the site."""
    for (step, host), why in answers.silent.items():
        if step == JOBS and AT_WORK in why:
            raise error(
                "validation-at-work",
                "another validation of this cluster is at work; two at once would cancel each other's jobs",
                where=host,
                hint="wait until it has ended, a few minutes at most, and type the command again",
            )
