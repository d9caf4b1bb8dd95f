"""``deploy restore``: the verb."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from deploy.cli.consent import ask_to_go_on, go_on
from deploy.cli.displays import Output, choose_display
from deploy.cli.parameters import (
    ExtraVariables,
    Forks,
    Inventory,
    PlainAnsible,
    PrivateKey,
    User,
    VaultPasswordFile,
    say,
)
from deploy.cli.quick_validation import validate_quickly
from deploy.engine.cluster import deploy_cluster
from deploy.engine.options import Options
from deploy.engine.restore import PARTS, Wish, try_restore
from deploy.engine.restore import restore as restore_backup
from deploy.errors import ExitCode, error


def restore(
    inventory: Inventory,
    archive: Annotated[
        Path, typer.Argument(metavar="BACKUP", exists=True, dir_okay=False, help="A file of `deploy backup`.")
    ],
    *,
    identity: Annotated[
        list[Path],
        typer.Option(
            "--identity", "-i", exists=True, dir_okay=False, help="A private key that decrypts; repeatable."
        ),
    ],
    only: Annotated[
        str | None, typer.Option(metavar="PARTS", help=f"Of {', '.join(PARTS)}, separated by commas.")
    ] = None,
    max_age: Annotated[int, typer.Option(min=1, help="Refuse a backup that is older, in days.")] = 7,
    check: Annotated[
        bool, typer.Option("--check", "-C", help="Try it all in places that vanish; change nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Go on although something is lost.")] = False,
    validates: Annotated[
        bool, typer.Option("--validate/--no-validate", help="Validate the cluster afterwards.")
    ] = True,
    user: User = None,
    private_key: PrivateKey = None,
    forks: Forks = None,
    plain_ansible: PlainAnsible = False,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
    output: Annotated[
        Output | None, typer.Option(help="live on a terminal, else plain; jsonl for programs.")
    ] = None,
) -> None:
    """Make the cluster of a backup again, on a controller that has nothing or on one that runs.

    The backup is read to its end first: one that was cut off, altered, made for another key or cluster, or
    that is too old is refused, and nothing was changed. Then the site gets its secrets, the controller
    Slurm's state and the accounting database, each before what reads it starts, and `deploy cluster` does the
    rest. Jobs that run on nodes go on.

    What was submitted after the backup is not in it: the jobs that nodes run and it does not know are named,
    and slurmctld ends them. Jobs that it has and no node runs are named, too: those that ended since run once
    more. Going on needs a typed yes, or --yes, as does a controller that has a state or a database already;
    those are put aside, and stay.

    Examples:
      deploy restore inventory.ini backups/cluster-20270101T020000Z.age --identity backup.key
      deploy restore inventory.ini backups/cluster-20270101T020000Z.age --identity backup.key --check
      deploy restore inventory.ini backups/cluster-20270101T020000Z.age --identity backup.key --only database

    """
    options = Options(
        user=user,
        private_key=private_key,
        forks=forks,
        plain_ansible=plain_ansible,
        extra=tuple(extra or ()),
        vault_password_file=vault_password_file,
    )
    wish = Wish(archive, tuple(identity), _parts(only), max_age)
    if check:
        try_restore(inventory, wish, options, say)
        return

    def deploys(options: Options) -> None:
        agrees = go_on if yes else ask_to_go_on
        summary = deploy_cluster(inventory, options, choose_display(output, options), agrees, say)
        if summary.exit_code is not ExitCode.OK:
            raise typer.Exit(summary.exit_code)

    agrees = go_on if yes else partial(ask_to_go_on, "That would be lost")
    restore_backup(inventory, wish, options, agrees=agrees, say=say, deploys=deploys)
    if validates and wish.parts != {"secrets"}:
        found = validate_quickly(inventory, options, as_data=output is Output.JSONL)
        raise typer.Exit(found.exit_code)


def _parts(only: str | None) -> frozenset[str]:
    chosen = frozenset(only.split(",")) if only else frozenset(PARTS)
    if unknown := sorted(chosen - {*PARTS}):
        raise error(
            "invalid-option",
            f"a backup has no part {', '.join(unknown)}",
            where="--only",
            hint=f"some of {','.join(PARTS)}",
        )
    return chosen
