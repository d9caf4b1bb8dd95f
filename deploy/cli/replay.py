"""``deploy replay``: the verb."""

import json
import re
import sys
from typing import Annotated

import typer

from deploy.cli.parameters import (
    AsData,
    AskBecomePass,
    AskPass,
    ExtraVariables,
    Inventory,
    PlainAnsible,
    PrivateKey,
    User,
    VaultPasswordFile,
    ask_password,
)
from deploy.engine.options import Options
from deploy.engine.replay import replay as replay_jobs
from deploy.errors import error
from deploy.show.replay import as_json, lines


def replay(
    inventory: Inventory,
    *,
    since: Annotated[str, typer.Option(metavar="DAYS", help="How far back, as 7d.")] = "30d",
    as_data: AsData = False,
    user: User = None,
    private_key: PrivateKey = None,
    ask_pass: AskPass = False,
    ask_become_pass: AskBecomePass = False,
    plain_ansible: PlainAnsible = False,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Say which jobs of the last month would be refused after a run, and whose they were.

    Accounting says what jobs asked for. A throwaway Slurm beside the controller's is asked about each such
    request, as its user: first with the configuration and the limits that are there, then with what the
    inventory says now (partitions, QOS, accounts, job_submit.lua). What differs is told, with Slurm's reason.
    The cluster does not notice; nothing is changed, and nothing is left behind. Exit code 0: all jobs would
    fare as now; 3: some would not; 1: it could not be tried.

    Examples:
      deploy replay inventory.ini
      deploy replay inventory.ini --since 7d --json

    """
    days = _days(since)
    options = Options(
        user=user,
        private_key=private_key,
        plain_ansible=plain_ansible,
        extra=tuple(extra or ()),
        vault_password_file=vault_password_file,
        connection_password=ask_password("SSH", is_wanted=ask_pass),
        become_password=ask_password("sudo", is_wanted=ask_become_pass),
    )
    came = replay_jobs(inventory, options, days, _progress)
    if as_data:
        typer.echo(json.dumps(as_json(came), indent=1))
    else:
        typer.echo("\n".join(lines(came)))
    raise typer.Exit(came.exit_code)


def _days(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,3}d", text):
        raise error(
            "invalid-option",
            f"{text!r} is not a number of days",
            where="--since",
            hint="name days, as in --since 30d",
        )
    return int(text[:-1])


def _progress(step: str) -> None:
    if sys.stderr.isatty():
        typer.echo(f"{step} …", err=True)
