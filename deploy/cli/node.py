"""``deploy node``: machines that come and go."""

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from deploy.cli.parameters import (
    AsData,
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
from deploy.engine import departure, drains
from deploy.engine import reboot as rebooting
from deploy.engine.batches import share
from deploy.engine.options import Options
from deploy.errors import ExitCode, shown_path
from deploy.show.drains import as_json, back_lines, drained_lines, node_lines, released_lines

node_app = plain_typer(no_args_is_help=True, help="Nodes out of service and back; machines that leave.")

Nodes = Annotated[str, typer.Argument(metavar="NODES", help="As Slurm writes them: node1, 'node[1-4,7]'.")]

Batch = Annotated[
    str,
    typer.Option(
        metavar="SHARE",
        help="How much at once: nodes (2), or of each partition (10%), what else is out counted.",
    ),
]

_STAYS = "accounts, files and packages stay there: install the machine anew where it shall serve others"


@node_app.command()
def drain(
    inventory: Inventory,
    nodes: Nodes,
    *,
    reason: Annotated[str, typer.Option("--reason", "-r", help="Why, for whoever finds the node drained.")],
    wait: Annotated[bool, typer.Option("--wait", help="Return when no job runs there any more.")] = False,
    user: User = None,
    private_key: PrivateKey = None,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Take nodes out of service: no new job starts there, those that run go on to their end.

    The controller keeps who drained a node, why and since when. Several drains of one node are kept apart,
    also from those of its health check and of a reboot: it is in service again when all are released.

    Examples:
      deploy node drain inventory.ini node3 --reason 'replace DIMM A3'
      deploy node drain inventory.ini 'node[1-4]' --reason 'firmware' --wait

    """
    options = _options(user, private_key, extra, vault_password_file)

    def tell(waiting: tuple[drains.Node, ...]) -> None:
        jobs = sum(len(node.jobs) for node in waiting)
        say(f"{jobs} job{'s' * (jobs != 1)} on {sum(bool(node.jobs) for node in waiting)} of the nodes")

    drained = drains.drain(inventory, nodes, reason, options, tell=tell if wait else None)
    typer.echo("\n".join(drained_lines(drained)))


@node_app.command()
def resume(
    inventory: Inventory,
    nodes: Nodes,
    *,
    by: Annotated[str | None, typer.Option(metavar="WHO", help="Release what WHO drained, not you.")] = None,
    user: User = None,
    private_key: PrivateKey = None,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Release your drains of nodes. What somebody or something else holds stays drained, and is named.

    Exit code 1: a node stays drained of which you hold no drain.

    Examples:
      deploy node resume inventory.ini node3
      deploy node resume inventory.ini node3 --by alice

    """
    options = _options(user, private_key, extra, vault_password_file)
    came = drains.resume(inventory, nodes, options, by)
    typer.echo("\n".join(released_lines(came, f"deploy node resume {shown_path(inventory)}")))
    had = {each.node for each in came.released}
    if any(node.is_drained and node.name not in had for node in came.nodes):
        raise typer.Exit(ExitCode.FAILED)


@node_app.command()
def reboot(
    inventory: Inventory,
    nodes: Nodes,
    *,
    reason: Annotated[str, typer.Option("--reason", "-r", help="Why, for whoever finds a node drained.")],
    batch: Batch = "1",
    user: User = None,
    private_key: PrivateKey = None,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Reboot nodes in batches, each drained first, and back in service when it is well.

    A batch is drained, waits for its jobs, reboots, boots anew, registers with Slurm and passes its health
    check; then its nodes are released and the next batch begins. A node that does not come back within its
    reboot_timeout_minutes stays drained with the reason, and nothing more is begun.

    Exit code 1: a batch was not good. Nodes that others drained are rebooted, and stay drained.

    Examples:
      deploy node reboot inventory.ini node3 --reason 'new kernel'
      deploy node reboot inventory.ini 'node[1-64]' --batch 10% --reason 'new kernel'

    """
    options = _options(user, private_key, extra, vault_password_file)
    came = rebooting.reboot(inventory, nodes, reason, options, most=share(batch), say=say)
    typer.echo("\n".join(back_lines(came, "rebooted")))


@node_app.command("list")
def list_nodes(
    inventory: Inventory,
    *,
    as_data: AsData = False,
    user: User = None,
    private_key: PrivateKey = None,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Show every node's state in Slurm, its jobs, and all that keeps it out of service.

    Examples:
      deploy node list inventory.ini
      deploy node list inventory.ini --json

    """
    nodes = drains.listed(inventory, _options(user, private_key, extra, vault_password_file))
    typer.echo(json.dumps(as_json(nodes), indent=1) if as_data else "\n".join(node_lines(nodes, time.time())))


def _options(
    user: str | None,
    private_key: Path | None,
    extra: list[str] | None,
    vault_password_file: Path | None,
    connection_password: str | None = None,
) -> Options:
    return Options(
        user=user,
        private_key=private_key,
        extra=tuple(extra or ()),
        vault_password_file=vault_password_file,
        connection_password=connection_password,
    )


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
    password = ask_password("SSH", is_wanted=ask_pass)
    options = _options(user, private_key, extra, vault_password_file, password)
    done = departure.remove(inventory, node, options, say, is_gone=gone)
    for what in done:
        typer.echo(f"{node}: no more {what}")
    again = f"deploy cluster {shown_path(inventory)} --new-secrets"
    has_key = f"forgotten. Whoever has its disk has the cluster's munge key; to replace it: {again}"
    typer.echo(f"{node}: {has_key if gone else f'forgotten; {_STAYS}'}")
