"""``deploy plan``: the verb."""

import json
import sys

import typer

from deploy.cli.converge import plan_cluster
from deploy.cli.displays import Output, choose_display
from deploy.cli.options import Options, ask_password
from deploy.cli.parameters import (
    AsData,
    AskBecomePass,
    AskPass,
    ExtraVariables,
    Forks,
    Inventory,
    LimitOfRun,
    NewSecrets,
    PrivateKey,
    SkipTags,
    Tags,
    User,
    VaultPasswordFile,
)
from deploy.errors import ExitCode
from deploy.judge.forecast import Forecast
from deploy.show.display import Display
from deploy.show.forecast import as_json, change_lines, drift_lines, failure_texts, loss_lines, verdict
from deploy.show.plain import PlainDisplay
from deploy.show.summary import Outcome, Summary
from deploy.show.text import unfinished_lines


def plan(
    inventory: Inventory,
    *,
    limit: LimitOfRun = None,
    tags: Tags = None,
    skip_tags: SkipTags = None,
    new_secrets: NewSecrets = False,
    as_data: AsData = False,
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
        new_secrets=new_secrets,
        user=user,
        private_key=private_key,
        forks=forks,
        extra=tuple(extra or ()),
        vault_password_file=vault_password_file,
        connection_password=ask_password("SSH", is_wanted=ask_pass),
        become_password=ask_password("sudo", is_wanted=ask_become_pass),
    )
    forecast, summary = plan_cluster(inventory, options, _display(options, as_data=as_data))
    if as_data:
        came_to = summary.to_json()
        more = ("outcome", "trouble", "not_run", "left_over")
        data = as_json(forecast) | {name: came_to[name] for name in more}
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
        unfinished_lines(summary),
        loss_lines(forecast),
    ):
        if lines:
            typer.echo("\n".join(lines) + "\n")
    typer.echo("plan: not known, because Ansible broke" if summary.trouble else verdict(forecast))


def _exit_code(forecast: Forecast, summary: Summary) -> ExitCode:
    if summary.outcome is not Outcome.CONVERGED:
        return summary.exit_code
    return ExitCode.CHANGES_PENDING if forecast.changes else ExitCode.OK
