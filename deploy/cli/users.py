"""``deploy users``: who may do what on the cluster, and why."""

import json
from datetime import UTC, datetime
from typing import Annotated

import typer

from deploy.cli.parameters import (
    AsData,
    ExtraVariables,
    Inventory,
    PrivateKey,
    User,
    VaultPasswordFile,
    login_options,
)
from deploy.engine.users import users_of
from deploy.errors import error
from deploy.show.users import as_json, lines


def users(
    inventory: Inventory,
    *,
    only: Annotated[str | None, typer.Option(metavar="NAME", help="This person alone.")] = None,
    as_data: AsData = False,
    user: User = None,
    private_key: PrivateKey = None,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Show who may do what on the cluster, and why.

    For each person: from this host's own files or a directory, the accounts that may be charged and their
    QOS, by the inventory, a group or by hand; rights in Slurm, sudo, where one logs in, and keys with their
    restrictions. The host of the accounting database and the first login node are asked; nothing is changed.

    Examples:
      deploy users inventory.ini
      deploy users inventory.ini --only alice --json

    """
    people = users_of(inventory, login_options(user, private_key, extra, vault_password_file))
    if only is not None:
        people = tuple(person for person in people if person.name == only)
        if not people:
            raise error(
                "invalid-option",
                f"nobody on this cluster is called {only}",
                where="--only",
                hint=f"see who is there: deploy users {inventory}",
            )
    now = datetime.now(UTC)
    if as_data:
        typer.echo(json.dumps(as_json(people, now), indent=1))
    else:
        for line in lines(people, now):
            typer.echo(line)
