"""``deploy status``: what the cluster is like now."""

import json
import sys

import typer

from deploy.cli.parameters import (
    AsData,
    AskPass,
    ExtraVariables,
    Forks,
    Inventory,
    Limit,
    PlainAnsible,
    PrivateKey,
    User,
    VaultPasswordFile,
    ask_password,
)
from deploy.engine.options import Options
from deploy.engine.status import SiteStatus, status_of
from deploy.show.status import as_json, lines


def status(
    inventory: Inventory,
    *,
    limit: Limit = None,
    as_data: AsData = False,
    user: User = None,
    private_key: PrivateKey = None,
    ask_pass: AskPass = False,
    forks: Forks = None,
    plain_ansible: PlainAnsible = False,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Show every host on a line: Slurm's state, services, hardware, clock, when it converged.

    Nothing is changed, and it may be asked while `deploy cluster` runs. Below the table stands what is wrong,
    with the next command to type; of several controllers it says who leads. Exit code 0: all is well; 1:
    something is wrong on a host; 4: a host is unreachable.

    Examples:
      deploy status inventory.ini
      deploy status inventory.ini --limit 'node[1-4]' --json

    """
    options = Options(
        limit=limit,
        user=user,
        private_key=private_key,
        forks=forks,
        plain_ansible=plain_ansible,
        extra=tuple(extra or ()),
        vault_password_file=vault_password_file,
        connection_password=ask_password("SSH", is_wanted=ask_pass),
    )
    found = status_of(inventory, options)
    if as_data:
        typer.echo(json.dumps(as_json(found), indent=1))
    else:
        _show(found)
    raise typer.Exit(found.exit_code)


def _show(found: SiteStatus) -> None:
    if sys.stdout.isatty():
        # Only a terminal needs it, and it costs a tenth of the start.
        from rich.console import Console  # noqa: PLC0415

        from deploy.show.status_table import print_status  # noqa: PLC0415

        print_status(Console(), found)
        return
    for line in lines(found):
        typer.echo(line)
