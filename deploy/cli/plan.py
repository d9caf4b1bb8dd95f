"""``deploy plan``: the verb."""

import getpass
import json
import sys
from typing import Annotated

import typer

from deploy.cli.converge import plan_cluster
from deploy.cli.displays import Output, choose_display
from deploy.cli.options import Options
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
from deploy.errors import ExitCode
from deploy.judge.forecast import Forecast
from deploy.show.display import Display
from deploy.show.forecast import as_json, change_lines, drift_lines, failure_texts, loss_lines, verdict
from deploy.show.plain import PlainDisplay
from deploy.show.summary import Outcome, Summary


def plan(
    inventory: Inventory,
    *,
    limit: Annotated[
        str | None, typer.Option("--limit", "-l", help="Only these hosts, and what the controller must know.")
    ] = None,
    tags: Annotated[str | None, typer.Option("--tags", "-t", help="Only tasks with these tags.")] = None,
    skip_tags: Annotated[str | None, typer.Option(help="All tasks but those with these tags.")] = None,
    as_data: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    user: User = None,
    private_key: PrivateKey = None,
    ask_pass: AskPass = False,
    ask_become_pass: AskBecomePass = False,
    forks: Forks = None,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Show what `deploy cluster` would do: every change, its difference, what it disturbs, which jobs.

    The impact of a change is one of none, reconfigure, restart, drain, reboot and kills jobs. Nothing is
    changed. Exit code 0: nothing to do; 3: changes are pending; 1: something could not be foretold.

    Examples:
      deploy plan inventory.ini
      deploy plan inventory.ini --limit node3
      deploy plan inventory.ini --json

    """
    options = Options(
        limit=limit,
        tags=tags,
        skip_tags=skip_tags,
        user=user,
        private_key=private_key,
        forks=forks,
        extra=tuple(extra or ()),
        vault_password_file=vault_password_file,
        connection_password=getpass.getpass("SSH password: ") if ask_pass else None,
        become_password=getpass.getpass("sudo password: ") if ask_become_pass else None,
    )
    forecast, summary = plan_cluster(inventory, options, _display(options, as_data=as_data))
    if as_data:
        data = {**as_json(forecast), "outcome": summary.outcome.value, "trouble": list(summary.trouble)}
        typer.echo(json.dumps(data, indent=1))
    else:
        _show(forecast, summary)
    raise typer.Exit(_exit_code(forecast, summary))


def _display(options: Options, *, as_data: bool) -> Display:
    """A terminal sees how far the question is; everyone else only the answer."""
    if sys.stdout.isatty() and not as_data:
        return choose_display(Output.LIVE, options)
    return PlainDisplay(lambda _: None)


def _show(forecast: Forecast, summary: Summary) -> None:
    for lines in (
        drift_lines(forecast),
        change_lines(forecast),
        failure_texts(forecast),
        list(summary.trouble),
        loss_lines(forecast),
        [verdict(forecast)],
    ):
        if lines:
            typer.echo("\n".join(lines) + "\n" * (lines[-1] != verdict(forecast)))


def _exit_code(forecast: Forecast, summary: Summary) -> ExitCode:
    if summary.outcome is not Outcome.CONVERGED:
        return summary.exit_code
    return ExitCode.CHANGES_PENDING if forecast.changes else ExitCode.OK
