"""``deploy failover`` and ``deploy failback``: which of several controllers leads, as planned."""

import json
from pathlib import Path
from typing import Annotated

import typer

from deploy.cli.consent import ask_to_go_on
from deploy.cli.parameters import (
    AsData,
    ExtraVariables,
    Inventory,
    PrivateKey,
    User,
    VaultPasswordFile,
    login_options,
    say,
)
from deploy.engine import failover as moves
from deploy.engine.failover import Agrees, Intent, Moved
from deploy.errors import shown_path
from deploy.show.failover import as_json, intent_line, moved_lines

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Begin without a question.")]


def failover(
    inventory: Inventory,
    *,
    to: Annotated[
        str | None,
        typer.Option(metavar="HOST", help="The controller that shall lead.", show_default="the second"),
    ] = None,
    yes: Yes = False,
    as_data: AsData = False,
    user: User = None,
    private_key: PrivateKey = None,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Have another controller lead, as before maintenance of the one that does.

    It must stand by, reach the controllers' state and have slurmdbd answer; else nothing is changed. Jobs go
    on; for some seconds Slurm does not answer. Then it leads with the same jobs, or what became of them is
    told. The first controller does not stand by: its slurmctld is stopped, and leads again when it is
    started, as by a boot, `deploy cluster` or `deploy failback`.

    Exit code 0 also where it leads already; 1: a job was lost, or it did not take the lead.

    Examples:
      deploy failover inventory.ini
      deploy failover inventory.ini --to ctl3 --yes

    """
    options = login_options(user, private_key, extra, vault_password_file)
    _show(inventory, moves.failover(inventory, to, options, _agrees(yes=yes), say), as_data=as_data)


def failback(
    inventory: Inventory,
    *,
    yes: Yes = False,
    as_data: AsData = False,
    user: User = None,
    private_key: PrivateKey = None,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Have the first controller of the inventory lead again.

    Its slurmctld is started, which takes the lead; the one that led stands by. What is asked before, and
    compared afterwards, is the same as with `deploy failover`.

    Examples:
      deploy failback inventory.ini
      deploy failback inventory.ini --yes --json

    """
    options = login_options(user, private_key, extra, vault_password_file)
    _show(inventory, moves.failback(inventory, options, _agrees(yes=yes), say), as_data=as_data)


def _agrees(*, yes: bool) -> Agrees:
    def agrees(intent: Intent) -> bool:
        say(intent_line(intent))
        return yes or ask_to_go_on("Clients wait for some seconds")

    return agrees


def _show(inventory: Path, came: Moved, *, as_data: bool) -> None:
    back = f"deploy failback {shown_path(inventory)}"
    typer.echo(json.dumps(as_json(came), indent=1) if as_data else "\n".join(moved_lines(came, back)))
    raise typer.Exit(came.exit_code)
