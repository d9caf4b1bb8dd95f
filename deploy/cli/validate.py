"""``deploy validate``: whether the cluster does what it promises."""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from deploy.cli.files import refuse_unwritable, write
from deploy.cli.parameters import (
    AskBecomePass,
    AskPass,
    ExtraVariables,
    Forks,
    Inventory,
    PlainAnsible,
    PrivateKey,
    User,
    VaultPasswordFile,
    ask_password,
    burn_in_hours,
)
from deploy.engine.options import Options
from deploy.engine.reports import validation_before
from deploy.engine.validation import validate_site
from deploy.errors import error
from deploy.show.validation import as_junit, lines, since_lines
from deploy.show.validation_page import as_html
from deploy.site.values import suggestion
from deploy.validate.catalog import CHECKS, LOAD, Check, chosen, ordinary
from deploy.validate.comparison import Comparison, compare
from deploy.validate.record import as_data
from deploy.validate.result import Validation


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
    since: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Say what changed since the validation before that run, or since the last one: last.",
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
    plain_ansible: PlainAnsible = False,
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
      deploy validate inventory.ini --since last

    """
    options = Options(
        user=user,
        private_key=private_key,
        forks=forks,
        plain_ansible=plain_ansible,
        extra=tuple(extra or ()),
        vault_password_file=vault_password_file,
        connection_password=ask_password("SSH", is_wanted=ask_pass),
        become_password=ask_password("sudo", is_wanted=ask_become_pass),
    )
    checks = _chosen(only or [], skip or [], burn_in)
    for path in (as_json_file, junit, html):
        refuse_unwritable(path)
    earlier = validation_before(inventory, since) if since else None
    found = validate_site(
        inventory,
        options,
        checks,
        is_quick=quick,
        burn_in_hours=burn_in or 0.0,
        announce=lambda line: typer.echo(line, err=True),
        progress=progress,
    )
    changed = compare(earlier, found) if earlier else None
    if as_json_file is not None:
        data = as_data(found) | ({"since": asdict(changed)} if changed else {})
        write(as_json_file, json.dumps(data, indent=1) + "\n")
    if junit is not None:
        write(junit, as_junit(found))
    if html is not None:
        write(html, as_html(found, changed))
    if as_json_file != Path("-"):
        show(found, changed)
    raise typer.Exit(found.exit_code)


def _chosen(only: list[str], skip: list[str], hours: float | None = None) -> tuple[Check, ...]:
    burn_in_hours(hours)
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


def progress(step: str) -> None:
    """What is done next, for whoever waits at a terminal."""
    if sys.stderr.isatty():
        typer.echo(f"{step} …", err=True)


def show(found: Validation, changed: Comparison | None = None) -> None:
    """Prints a validation, and what changed since an earlier one."""
    for line in lines(found, is_colored=sys.stdout.isatty() and not os.environ.get("NO_COLOR")):
        typer.echo(line)
    for line in since_lines(changed) if changed else ():
        typer.echo(line)
