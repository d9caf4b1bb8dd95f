"""``deploy backup``: the verb."""

import json
import time
from typing import Annotated

import typer

from deploy.cli.parameters import AsData, ExtraVariables, Inventory, PrivateKey, User, VaultPasswordFile, say
from deploy.engine.backup import kept_backups, make_backup
from deploy.engine.options import Options
from deploy.show.backups import backup_json, backup_lines, made_lines


def backup(
    inventory: Inventory,
    *,
    to: Annotated[
        str | None,
        typer.Option(metavar="[[USER@]HOST:]DIR", help="Where; by default `backups` beside the inventory."),
    ] = None,
    lists: Annotated[bool, typer.Option("--list", help="Show the backups there are; make none.")] = False,
    as_data: AsData = False,
    user: User = None,
    private_key: PrivateKey = None,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Make an encrypted archive of Slurm's queue, its accounting and the site.

    It has the accounting database (loaded into a server of its own and counted there), Slurm's state with
    all jobs and their scripts, deploy's records, and the site's files: secrets.yml, hardware.yml, the
    inventory and its variables. Slurm runs on meanwhile. It has neither what slurmdbd archived before it
    purged (`slurmdbd_archive_dir`) nor other databases (`mariadb_databases`), homes or metrics.

    Only who has a private key of `backup_recipients` can read it; without recipients nothing is made, exit
    code 2. To another machine it goes by sftp, as your own ssh reaches that: with a key, without a question,
    its host key known. Backups in the same directory that outlived `backup_keep` are removed. What puts it
    back is `deploy restore`.

    Examples:
      deploy backup inventory.ini
      deploy backup inventory.ini --to /mnt/backups
      deploy backup inventory.ini --to keeper@vault.example.org:backups
      deploy backup inventory.ini --list

    """
    options = Options(
        user=user, private_key=private_key, extra=tuple(extra or ()), vault_password_file=vault_password_file
    )
    if lists:
        kept = kept_backups(inventory, to, options)
        shown = (
            json.dumps(backup_json(kept), indent=1) if as_data else "\n".join(backup_lines(kept, time.time()))
        )
        typer.echo(shown)
        return
    made = make_backup(inventory, to, options)
    if made.left:
        say(made.left)
    if as_data:
        typer.echo(json.dumps({**backup_json([made.kept])[0], "manifest": made.manifest}, indent=1))
    else:
        typer.echo("\n".join(made_lines(made)))
