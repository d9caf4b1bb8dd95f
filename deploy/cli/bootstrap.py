"""``deploy bootstrap``: from machines with an account and a password to machines that deploy works on."""

import json
from collections.abc import Mapping
from typing import Annotated

import typer

from deploy.cli.consent import confirm_host_keys
from deploy.cli.parameters import (
    AsData,
    AskBecomePass,
    AskPass,
    ExtraVariables,
    Forks,
    Inventory,
    Limit,
    PrivateKey,
    User,
    VaultPasswordFile,
    ask_password,
    say,
)
from deploy.engine import bootstrap as machines
from deploy.engine.options import Options
from deploy.errors import shown_path
from deploy.show.bootstrap import as_json, key_lines, readied_lines


def bootstrap(
    inventory: Inventory,
    *,
    limit: Limit = None,
    user: User = None,
    private_key: PrivateKey = None,
    ask_pass: AskPass = False,
    ask_become_pass: AskBecomePass = False,
    keep_sudo_password: Annotated[
        bool, typer.Option("--keep-sudo-password", help="sudo asks for its password as before.")
    ] = False,
    accept_host_keys: Annotated[
        bool,
        typer.Option("--accept-host-keys", help="Believe host keys that nobody knows, without a question."),
    ] = False,
    forks: Forks = None,
    as_data: AsData = False,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Let your key in on new machines, and install what deploy needs there.

    For machines that have no more than ssh and an account with a password, as an installer leaves them. On
    each: the public half of your ssh key is let in for the account, sudo and Python are installed where they
    are missing, and the account may become root without a password (/etc/sudoers.d/deploy-UID), unless it
    may already. Host keys that nobody knows are shown, to be compared and confirmed, and kept.

    What is there stays as it is; running it again changes nothing. At the end each host is asked by key, as
    every other verb does it.

    Exit code 3: nobody confirmed the host keys, and nothing was changed.

    Examples:
      deploy bootstrap inventory.ini --user ubuntu -k -K
      deploy bootstrap inventory.ini --user root -k --limit node7

    """
    options = Options(
        limit=limit,
        user=user,
        private_key=private_key,
        forks=forks,
        extra=tuple(extra or ()),
        vault_password_file=vault_password_file,
        connection_password=ask_password("SSH", is_wanted=ask_pass),
        become_password=ask_password("sudo", is_wanted=ask_become_pass),
    )

    def confirms(keys: Mapping[str, str]) -> bool:
        for line in key_lines(keys):
            say(line)
        return accept_host_keys or confirm_host_keys(len(keys))

    came = machines.bootstrap(inventory, options, confirms, has_rule=not keep_sudo_password)
    if as_data:
        typer.echo(json.dumps(as_json(came), indent=2))
    else:
        command = f"deploy bootstrap {shown_path(inventory)} -k -K"
        for line in readied_lines(came, f"deploy check {shown_path(inventory)}", command):
            typer.echo(line)
    if came.exit_code:
        raise typer.Exit(came.exit_code)
