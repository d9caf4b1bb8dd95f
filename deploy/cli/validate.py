"""``deploy validate``: whether the cluster does what it promises."""

import json
import os
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

from deploy.cli.options import Options, ask_password
from deploy.cli.parameters import (
    AskBecomePass,
    AskPass,
    ExtraVariables,
    Forks,
    Inventory,
    PrivateKey,
    User,
    VaultPasswordFile,
)
from deploy.cli.playbook_run import open_site, refuse_silence, run_request, shown_path
from deploy.durable import write_private
from deploy.errors import DeployError, ExitCode, error
from deploy.judge.site_status import site_status
from deploy.place import private_place
from deploy.run.cancellation import signals_cancel
from deploy.run.events import Event, TaskStarted
from deploy.run.execute import execute
from deploy.run.journal import state_directory
from deploy.run.lock import site_lock
from deploy.run.settings import Settings
from deploy.show.validation import as_json, as_junit, lines
from deploy.show.validation_page import as_html
from deploy.site.hardware import read_contract
from deploy.site.secrets import secrets_file
from deploy.site.values import suggestion
from deploy.validate.baseline import keep_baseline, read_baseline, with_regressions
from deploy.validate.case import Case
from deploy.validate.catalog import CHECKS, LOAD, SLOW, Check, chosen, judged, ordinary
from deploy.validate.evidence import JOBS, Evidence, gathered
from deploy.validate.occupied import announced
from deploy.validate.programs.user import AT_WORK
from deploy.validate.questions import write_questions
from deploy.validate.thresholds import read_thresholds
from deploy.validate.verdict import Validation

_LOCK = "validation"
_HOUR, _MOST_HOURS = 3600, 168


def validate(
    inventory: Inventory,
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out what takes longer than a minute.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(metavar="CHECK", help="This check alone; may be repeated.")
    ] = None,
    skip: Annotated[
        list[str] | None, typer.Option(metavar="CHECK", help="Not this check; may be repeated.")
    ] = None,
    burn_in: Annotated[
        float | None,
        typer.Option(
            metavar="HOURS", help="Load on every node that nobody uses, for that long; 0.5 will do."
        ),
    ] = None,
    as_json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="The verdicts for programs; - for standard output."),
    ] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="The verdicts for a CI server.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="The verdicts on one page.")] = None,
    user: User = None,
    private_key: PrivateKey = None,
    ask_pass: AskPass = False,
    ask_become_pass: AskBecomePass = False,
    forks: Forks = None,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Measure the cluster as its users see it, and judge it against what the inventory promises.

    Jobs run as a user of their own (users_validation) in a hidden partition, wait for nobody, and push no job
    of users away; most take a CPU and a little memory, those that measure take nodes that nobody uses.
    Nothing is changed and nothing is left behind. What a site does not have is not applicable, and what
    users' jobs occupy is not measured: neither counts as passed. Exit code 0: nothing failed; 1: something
    did; 2: the site is wrong; 4: nothing failed, but a host could not be reached.

    Examples:
      deploy validate inventory.ini
      deploy validate inventory.ini --quick --html validation.html
      deploy validate inventory.ini --only gpu-binding --only munge
      deploy validate inventory.ini --only burn-in --burn-in 12

    """
    options = Options(
        user=user,
        private_key=private_key,
        forks=forks,
        extra=tuple(extra or ()),
        vault_password_file=vault_password_file,
        connection_password=ask_password("SSH", is_wanted=ask_pass),
        become_password=ask_password("sudo", is_wanted=ask_become_pass),
    )
    checks = _chosen(only or [], skip or [], burn_in)
    for path in (as_json_file, junit, html):
        _refuse_unwritable(path)
    found = validate_site(inventory, options, checks, is_quick=quick, burn_in_hours=burn_in or 0.0)
    if as_json_file is not None:
        _write(as_json_file, json.dumps(as_json(found), indent=1) + "\n")
    if junit is not None:
        _write(junit, as_junit(found))
    if html is not None:
        _write(html, as_html(found))
    if as_json_file != Path("-"):
        show(found)
    raise typer.Exit(found.exit_code)


def validate_site(
    inventory: Path,
    options: Options,
    checks: Collection[Check],
    *,
    is_quick: bool,
    burn_in_hours: float = 0.0,
) -> Validation:
    """Asks, runs the jobs, judges. Raises DeployError when the site is wrong or cannot be asked."""
    settings = Settings(forks=options.forks)
    began = time.time()
    with (
        open_site(inventory, options, settings) as opened,
        site_lock(state_directory(opened.site.directory), _LOCK),
        private_place() as place,
    ):
        site, contract = opened.site, read_contract(opened.site)
        thresholds = read_thresholds(site.directory)
        kinds = {kind for check in checks for kind in check.kinds} - (SLOW if is_quick else set())
        source = place / "questions.json"
        questions = write_questions(
            source, site, contract, kinds, thresholds=thresholds, burn_in_seconds=burn_in_hours * _HOUR
        )
        # How Prometheus is asked may name a secret of the site's.
        path = secrets_file(site)
        secrets = (path,) if site.metrics and path.exists() else None
        request = run_request(
            "validate", source, site=site, options=options, settings=settings, variable_files=secrets
        )
        events: list[Event] = []

        def take(event: Event) -> None:
            events.append(event)
            if isinstance(event, TaskStarted):
                _say(event.task)
                if event.step == JOBS and LOAD in kinds:
                    told = gathered(events).told([host.name for host in site.controllers], "nodes")
                    for line in announced(site, str((told or {}).get("out", "")), burn_in_hours):
                        typer.echo(line, err=True)

        with signals_cancel() as cancellation:
            execute(request, take, cancellation, opened.ansible)
        refuse_silence(events, [host.name for host in site.cluster], site, ExitCode.BAD_INPUT)
        evidence = gathered(events)
        _refuse_second(evidence)
        status = site_status(
            site,
            evidence.states,
            {},
            {},
            asked=[host.name for host in site.cluster],
            limit=None,
            inventory=shown_path(site.inventory),
            at=time.time(),
        )
        case = Case(site, contract, questions, evidence, status, thresholds, shown_path(site.inventory))
        found = judged(case, checks)
        state = state_directory(site.directory)
        found = with_regressions(found, read_baseline(state), thresholds)
        name, lost = str(case.value("slurmctld_cluster_name")), [it.status.name for it in status.unreachable]
        ended = Validation(name, began, time.time() - began, found, tuple(lost))
        if not ended.failed:
            keep_baseline(state, found)
        return ended


def _refuse_second(evidence: Evidence) -> None:
    """Two at once would cancel each other's jobs. The other one is of another copy of the site."""
    for (step, host), why in evidence.silent.items():
        if step == JOBS and AT_WORK in why:
            raise error(
                "validation-at-work",
                "another validation of this cluster is at work; two at once would cancel each other's jobs",
                where=host,
                hint="wait until it has ended, a few minutes at most, and type the command again",
            )


def _chosen(only: list[str], skip: list[str], hours: float | None = None) -> tuple[Check, ...]:
    if hours is not None and not 0 < hours <= _MOST_HOURS:
        hint = "name hours, as in --burn-in 12 or --burn-in 0.5"
        why = f"{hours:g} is not a number of hours above 0, and at most {_MOST_HOURS}"
        raise error("invalid-option", why, where="--burn-in", hint=hint)
    if hours is None and LOAD in only:
        raise error("invalid-option", "for how long?", where="--only burn-in", hint="add --burn-in HOURS")
    names = [check.name for check in CHECKS]
    for option, given in (("--only", only), ("--skip", skip)):
        for name in given:
            if name not in names:
                hint = suggestion(name, dict.fromkeys(names))
                raise error("invalid-option", f"there is no check {name}", where=option, hint=hint)
    left = chosen(only, skip) if hours is not None else ordinary(chosen(only, skip))
    if not left:
        raise error(
            "invalid-option",
            "no check is left",
            where="--skip",
            hint="leave out --skip, or name another check with --only",
        )
    return left


def _refuse_unwritable(path: Path | None) -> None:
    """Before minutes are spent on what could not be written down."""
    if path is None or path == Path("-"):
        return
    if path.is_dir() or not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise _not_writable(
            path, "is a directory" if path.is_dir() else "it or its directory is not writable"
        )


def _not_writable(path: Path, why: str) -> DeployError:
    return error("file-not-writable", f"cannot be written: {why}", where=str(path), hint="name another file")


def _write(path: Path, text: str) -> None:
    if path == Path("-"):
        typer.echo(text, nl=False)
        return
    try:
        write_private(path, text)
    except OSError as problem:
        raise _not_writable(path, problem.strerror or str(problem)) from None


def _say(line: str) -> None:
    if sys.stderr.isatty():
        typer.echo(f"{line} …", err=True)


def show(found: Validation) -> None:
    """Prints a validation."""
    for line in lines(found, is_colored=sys.stdout.isatty() and not os.environ.get("NO_COLOR")):
        typer.echo(line)
