"""``deploy update``: the verb."""

import json
import sys
from dataclasses import replace
from typing import Annotated

import typer

from deploy.cli.consent import ask_to_go_on
from deploy.cli.displays import choose_display
from deploy.cli.parameters import (
    AsData,
    ExtraVariables,
    Forks,
    Inventory,
    Limit,
    PrivateKey,
    User,
    VaultPasswordFile,
    say,
)
from deploy.engine.batches import share
from deploy.engine.cluster import deploy_cluster
from deploy.engine.options import Options
from deploy.engine.update import Pending, pending
from deploy.engine.update import update as update_hosts
from deploy.errors import DeployError, ExitCode
from deploy.show.update import as_json, pending_lines, updated_lines

_BY_HAND = "when nobody needs it, by hand"


def update(
    inventory: Inventory,
    *,
    batch: Annotated[
        str, typer.Option(metavar="SHARE", help="Compute nodes at once: 10% of each partition, or 2 in all.")
    ] = "10%",
    limit: Limit = None,
    check: Annotated[bool, typer.Option("--check", "-C", help="Say what waits; install nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Begin without a question.")] = False,
    as_data: AsData = False,
    user: User = None,
    private_key: PrivateKey = None,
    forks: Forks = None,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Install the distribution's updates on all hosts.

    Compute nodes go in batches: drained, waited for, updated, rebooted where a new kernel or what systemd
    itself runs asks for it, checked, and back in service before the next batch begins. No partition is ever
    short of more than the share. Then come the other hosts, one by one, controllers last; what was replaced
    under a running service is restarted, and a reboot that they need is named, not made. It ends at the first
    host that is not well; the same command goes on there. A host that cannot say what waits is left out and
    named at the end, unless it is a server that others need: then nothing begins.

    Slurm, munge, MariaDB, Pyxis and NVIDIA's packages stay as they are (bootstrap_attended_packages): they
    have an order of their own. At the end the hosts are converged, and record the new versions.

    Examples:
      deploy update inventory.ini --check
      deploy update inventory.ini --batch 2 --yes

    """
    most = share(batch)
    options = Options(
        limit=limit,
        user=user,
        private_key=private_key,
        forks=forks,
        extra=tuple(extra or ()),
        vault_password_file=vault_password_file,
    )
    if check or as_data:
        waiting = pending(inventory, options, say)
        text = json.dumps(as_json(waiting), indent=1) if as_data else "\n".join(pending_lines(waiting))
        typer.echo(text)
        raise typer.Exit(ExitCode.UNREACHABLE if any(it.trouble for it in waiting) else ExitCode.OK)

    def agrees(waiting: tuple[Pending, ...]) -> bool:
        typer.echo("\n".join(pending_lines(waiting)))
        return yes or _asks()

    came = update_hosts(inventory, options, agrees, most=most, say=say)
    exit_code = ExitCode.OK
    if came.hosts:
        typer.echo("\n".join(updated_lines(came, _BY_HAND)))
        of_these = replace(options, limit=",".join(came.hosts))
        display = choose_display(None, of_these)
        exit_code = deploy_cluster(inventory, of_these, display, ask_to_go_on, say).exit_code
    else:
        typer.echo("nothing was installed")
    if came.left_out:
        raise DeployError(*came.left_out, exit_code=exit_code or ExitCode.UNREACHABLE)
    raise typer.Exit(exit_code)


def _asks() -> bool:
    """Whether somebody types yes; without a terminal nobody does."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        say("nobody is there to be asked: --yes begins without a question")
        return False
    return typer.confirm("Install these?", default=False)
