"""``deploy node``: machines that come and go."""

from typing import Annotated

import typer

from deploy.cli.parameters import (
    AskPass,
    ExtraVariables,
    Inventory,
    PrivateKey,
    User,
    VaultPasswordFile,
    ask_password,
    say,
)
from deploy.cli.verbs import plain_typer
from deploy.engine import departure
from deploy.engine.options import Options
from deploy.errors import shown_path

node_app = plain_typer(no_args_is_help=True, help="Machines that come and go.")

_STAYS = "accounts, files and packages stay there: install the machine anew where it shall serve others"


@node_app.callback()
def _of_nodes() -> None:
    """Keeps `remove` a verb of its own: Typer would take a single one for the whole."""


@node_app.command()
def remove(
    inventory: Inventory,
    node: Annotated[str, typer.Argument(metavar="NODE", help="Its name in the inventory that had it.")],
    *,
    gone: Annotated[
        bool, typer.Option("--gone", help="Only forget it: the machine is no more, or was installed anew.")
    ] = False,
    user: User = None,
    private_key: PrivateKey = None,
    ask_pass: AskPass = False,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Take from a machine what makes it a member of the cluster, and forget it.

    First delete its line in the inventory, then type `deploy cluster`, which takes it from Slurm and names it
    until this was done. This stops and disables Slurm's daemons and munge there, and removes the cluster's
    munge key, slurmdbd's password and deploy's records. A machine on which jobs run is left as it is. Whoever
    may have copied the key is shut out by `deploy cluster --new-secrets`.

    Examples:
      deploy node remove inventory.ini node3
      deploy node remove inventory.ini node3 --gone

    """
    options = Options(
        user=user,
        private_key=private_key,
        extra=tuple(extra or ()),
        vault_password_file=vault_password_file,
        connection_password=ask_password("SSH", is_wanted=ask_pass),
    )
    done = departure.remove(inventory, node, options, say, is_gone=gone)
    for what in done:
        typer.echo(f"{node}: no more {what}")
    again = f"deploy cluster {shown_path(inventory)} --new-secrets"
    has_key = f"forgotten. Whoever has its disk has the cluster's munge key; to replace it: {again}"
    typer.echo(f"{node}: {has_key if gone else f'forgotten; {_STAYS}'}")
