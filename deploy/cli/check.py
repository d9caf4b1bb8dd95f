"""``deploy check``: whether a site and its machines are fit, before anything is changed."""

import json

import typer

from deploy.cli.parameters import (
    AsData,
    AskBecomePass,
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
from deploy.engine.check import check as check_machines
from deploy.engine.check import check_as_data
from deploy.engine.options import Options
from deploy.errors import shown_path
from deploy.show.check import as_json, lines


def check(
    inventory: Inventory,
    *,
    limit: Limit = None,
    as_data: AsData = False,
    user: User = None,
    private_key: PrivateKey = None,
    ask_pass: AskPass = False,
    ask_become_pass: AskBecomePass = False,
    forks: Forks = None,
    plain_ansible: PlainAnsible = False,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Say everything that is wrong with a site and its machines; change nothing, neither there nor here.

    First the inventory and its variables, without any connection. When they are right, every machine once:
    login and sudo, system, names, clock, disks, memory, ports, package sources, GPUs, another Slurm.
    `deploy cluster` makes the same checks first. Exit code 0: fit, 1: a machine is not, 2: the site is wrong,
    4: a machine cannot be reached.

    Examples:
      deploy check inventory.ini
      deploy check inventory.ini --limit node3 --json

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
        become_password=ask_password("sudo", is_wanted=ask_become_pass),
    )
    found = (check_as_data if as_data else check_machines)(inventory, options)
    if as_data:
        typer.echo(json.dumps(as_json(found), indent=1))
    else:
        for line in lines(found):
            typer.echo(line)
        again = f"deploy check {shown_path(inventory)}   (when this is fixed)"
        typer.echo(f"next: {again if found.exit_code else f'deploy cluster {shown_path(inventory)}'}")
    raise typer.Exit(found.exit_code)
