"""``deploy node``: machines that come and go."""

import json
import time
from typing import Annotated

import typer

from deploy.cli.consent import ask_to_go_on, confirm_host_key, go_on, refuse
from deploy.cli.displays import Output, choose_display
from deploy.cli.parameters import (
    AsData,
    AskPass,
    ExtraVariables,
    Inventory,
    PrivateKey,
    User,
    VaultPasswordFile,
    ask_password,
    burn_in_hours,
    login_options,
    say,
)
from deploy.cli.verbs import plain_typer
from deploy.engine import departure, drains
from deploy.engine import reboot as rebooting
from deploy.engine.batches import share
from deploy.engine.departure import Wanted
from deploy.engine.drains import Way, seconds
from deploy.engine.repair import Asked as Repair
from deploy.engine.repair import repair as repair_nodes
from deploy.engine.replace import Asked, refuse_rename, replace_node
from deploy.errors import ExitCode, error, shown_path
from deploy.show.drains import as_json, back_lines, drained_lines, node_lines, released_lines, repaired_lines

node_app = plain_typer(no_args_is_help=True, help="Nodes out of service and back; machines that leave.")

Nodes = Annotated[str, typer.Argument(metavar="NODES", help="As Slurm writes them: node1, 'node[1-4,7]'.")]

Batch = Annotated[
    str,
    typer.Option(
        metavar="SHARE",
        help="How much at once: nodes (2), or of each partition (10%), what else is out counted.",
    ),
]

Within = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Drain in 90m, 2h, 1d; until then only jobs start that end by then."),
]
WhenIdle = Annotated[
    bool,
    typer.Option("--when-idle", help="Drain when the jobs that are there end; shorter ones still start."),
]
Force = Annotated[bool, typer.Option("--force", help="Name the jobs there, ask, and requeue or cancel them.")]
BurnInHours = Annotated[
    float | None,
    typer.Option(metavar="HOURS", help="Load for so long before a node is in service again; 0.5 will do."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="With --force: ask nothing.")]

_STAYS = "accounts, files and packages stay there: install the machine anew where it shall serve others"


@node_app.command()
def drain(
    inventory: Inventory,
    nodes: Nodes,
    *,
    reason: Annotated[str, typer.Option("--reason", "-r", help="Why, for whoever finds the node drained.")],
    wait: Annotated[
        bool, typer.Option("--wait", help="Return when they are drained and no job runs there.")
    ] = False,
    within: Within = None,
    when_idle: WhenIdle = False,
    force: Force = False,
    yes: Yes = False,
    user: User = None,
    private_key: PrivateKey = None,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Take nodes out of service: no new job starts there, those that run go on to their end.

    The controller keeps who drained a node, why and since when. Several drains of one node are kept apart,
    also from those of its health check and of a reboot: it is in service again when all are released.

    With --within and --when-idle a reservation of Slurm's comes first: until it begins, jobs start there that
    end before. With --wait the drain takes over when its time has come; without, the reservation alone keeps
    jobs away from then on. `deploy node resume` takes back either.

    With --force the jobs that would be lost are named, and after a typed yes requeued, or cancelled where
    they cannot be.

    Examples:
      deploy node drain inventory.ini node3 --reason 'replace DIMM A3'
      deploy node drain inventory.ini 'node[1-4]' --reason 'firmware' --within 2h --wait
      deploy node drain inventory.ini node3 --reason 'smoke' --force

    """
    options, way = (
        login_options(user, private_key, extra, vault_password_file),
        _way(within, force, yes, when_idle=when_idle),
    )
    drained = drains.drain(inventory, nodes, reason, options, way=way, say=say, waits=wait)
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
    options = login_options(user, private_key, extra, vault_password_file)
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
    within: Within = None,
    when_idle: WhenIdle = False,
    force: Force = False,
    yes: Yes = False,
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
    options = login_options(user, private_key, extra, vault_password_file)
    way = _way(within, force, yes, when_idle=when_idle)
    came = rebooting.reboot(inventory, nodes, reason, options, most=share(batch), way=way, say=say)
    typer.echo("\n".join(back_lines(came, "rebooted")))


@node_app.command()
def replace(
    inventory: Inventory,
    node: Annotated[str, typer.Argument(metavar="NODE", help="Its name in the inventory, which stays.")],
    *,
    fingerprint: Annotated[
        str | None,
        typer.Option(
            metavar="SHA256:...", help="Of its new host key, read at its console; else you are asked."
        ),
    ] = None,
    reason: Annotated[str, typer.Option("--reason", "-r", help="Why, for whoever finds it drained.")] = "new",
    burn_in: BurnInHours = None,
    within: Within = None,
    when_idle: WhenIdle = False,
    force: Force = False,
    yes: Yes = False,
    user: User = None,
    private_key: PrivateKey = None,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
    output: Annotated[
        Output | None, typer.Option(help="live on a terminal, else plain; jsonl for programs.")
    ] = None,
) -> None:
    """Take a new machine, or one that was installed anew, into service under a node's name.

    It is drained first, if it is not. Its host key is accepted when it is the one of --fingerprint or the one
    that you confirm; its entry in hardware.yml is read anew; then it is converged, as by `deploy cluster
    --limit`, registers with Slurm, passes its health check and jobs of deploy validate, with --burn-in under
    load, and is in service again. Where one of this fails it stays drained with the reason, and the same
    command goes on.

    Examples:
      deploy node replace inventory.ini node3
      deploy node replace inventory.ini node3 --fingerprint SHA256:qwGuXR5C1x6eGTaHs7nxTRv+hR1Zi0sMDI5YBkQyBWk

    """
    options = login_options(user, private_key, extra, vault_password_file)
    way = _way(within, force, yes, when_idle=when_idle)
    hours = burn_in_hours(burn_in)
    asked = Asked(reason, way, fingerprint, confirm_host_key, ask_to_go_on, hours)
    came = replace_node(inventory, node, asked, options, display=choose_display(output, options), say=say)
    typer.echo("\n".join(back_lines([came], "replaced")), err=output is Output.JSONL)


@node_app.command()
def repair(
    inventory: Inventory,
    nodes: Annotated[
        str | None,
        typer.Argument(
            metavar="[NODES]",
            help="As Slurm writes them; else all that are out of service for a fault, or unfit by an alert.",
        ),
    ] = None,
    *,
    auto: Annotated[
        bool,
        typer.Option(
            "--auto", help="For a timer: within --most, no remedy twice a day, no job is waited for."
        ),
    ] = False,
    most: Annotated[
        str,
        typer.Option(metavar="SHARE", help="With --auto: how many nodes at most, as 2 or 5% of all."),
    ] = "5%",
    burn_in: BurnInHours = None,
    force: Force = False,
    yes: Yes = False,
    user: User = None,
    private_key: PrivateKey = None,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
    output: Annotated[
        Output | None, typer.Option(help="live on a terminal, else plain; jsonl for programs.")
    ] = None,
) -> None:
    """Put right what is wrong with nodes, by one remedy after the other, and take them into service again.

    What is wrong says each node's health check, or an alert of Prometheus with the label repair; what can be
    done goes by it: a service is restarted, a file system mounted anew, a full one cleaned, a GPU reset, the
    node converged, and at last rebooted. Nodes are drained first. Before a remedy that jobs would not
    survive, their end is waited for. A node that is registered with Slurm and well, its alerts quiet, is
    released, also from what its health check or Slurm itself drained it for (as "Kill task failed"); after a
    reboot, a reset of a GPU or an alert, and with --burn-in, when it passes what `deploy validate` checks of
    a node alone, by jobs too, before those of others begin there. One that is not stays drained, with what is
    wrong as the reason, and a dossier is written: what was tried, serial numbers, logs. What an admin drained
    stays so.

    Exit code 1: a node stays drained, or nothing is left to try for it.

    Examples:
      deploy node repair inventory.ini node3
      deploy node repair inventory.ini node3 --burn-in 0.5
      deploy node repair inventory.ini --auto --most 5%

    """
    options = login_options(user, private_key, extra, vault_password_file)
    way = _way(None, force, yes, when_idle=False)
    if auto and force:
        raise error(
            "invalid-option",
            "nobody is there to be asked about jobs",
            where="--force",
            hint="--auto leaves what jobs would not survive to a turn without jobs",
        )
    budget, hours = share(most, "--most") if auto else None, burn_in_hours(burn_in)
    asked = Repair(way, refuse if auto else ask_to_go_on, budget, hours)
    display = choose_display(output, options)
    came = repair_nodes(inventory, nodes, asked, options, display=display, say=say)
    typer.echo("\n".join(repaired_lines(came)), err=output is Output.JSONL)
    if came.left:
        raise typer.Exit(ExitCode.FAILED)


@node_app.command()
def rename(
    inventory: Inventory,
    node: Annotated[str, typer.Argument(metavar="NODE", help="Its name.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The name that it shall have.")],
) -> None:
    """Say why no node is renamed, and what to do instead. Changes nothing.

    Examples:
      deploy node rename inventory.ini node3 gpu3

    """
    raise refuse_rename(inventory, node, new)


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
    nodes = drains.listed(inventory, login_options(user, private_key, extra, vault_password_file))
    typer.echo(json.dumps(as_json(nodes), indent=1) if as_data else "\n".join(node_lines(nodes, time.time())))


def _way(within: str | None, force: bool, yes: bool, *, when_idle: bool) -> Way:  # noqa: FBT001 - as typed
    if (within is not None) + when_idle + force > 1 or (yes and not force):
        raise error(
            "invalid-option",
            "of --within, --when-idle and --force only one says when; --yes belongs to --force",
            where="--yes" if yes and not force else "--within",
            hint="deploy node drain --help",
        )
    agrees = go_on if yes else ask_to_go_on
    return Way(seconds(within) if within else None, is_when_idle=when_idle, agrees=agrees if force else None)


@node_app.command()
def remove(
    inventory: Inventory,
    node: Annotated[str, typer.Argument(metavar="NODE", help="Its name in the inventory that had it.")],
    *,
    gone: Annotated[
        bool, typer.Option("--gone", help="Only forget it: the machine is no more, or was installed anew.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the jobs that run there.")] = False,
    within: Within = None,
    when_idle: WhenIdle = False,
    force: Force = False,
    yes: Yes = False,
    user: User = None,
    private_key: PrivateKey = None,
    ask_pass: AskPass = False,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Take from a machine what makes it a member of the cluster, and forget it.

    A compute node is drained first; with --wait, --within, --when-idle and --force its jobs are waited for or
    ended, else it is left as it is while it has any. Then Slurm's daemons and munge are stopped and disabled
    there, and the cluster's keys, slurmdbd's password and deploy's records removed. The lines of the
    inventory that name it are told, for you to delete; the `deploy cluster` after that takes it from Slurm,
    the hosts files and monitoring. Of a host whose lines are deleted already, the same is taken.
    Whoever may have copied a key is shut out by `deploy cluster --rotate munge_key`, or slurm_auth_key where
    the site has auth/slurm; of a controller or a host of the database also --rotate slurm_tokens_key (of a
    REST API), slurmdbd_database_password and mariadb_cluster_key. With --gone the command is named.

    Examples:
      deploy node remove inventory.ini node3 --wait
      deploy node remove inventory.ini node3 --gone

    """
    password = ask_password("SSH", is_wanted=ask_pass)
    options = login_options(user, private_key, extra, vault_password_file, password)
    way = _way(within, force, yes, when_idle=when_idle)
    wanted = Wanted(is_gone=gone, waits=wait or way != Way(), way=way)
    removed = departure.remove(inventory, node, options, say, wanted)
    for what in removed.done:
        typer.echo(f"{node}: no more {what}")
    if removed.lines:
        typer.echo(f"{node}: drained. Delete it from {', '.join(removed.lines)}")
        typer.echo(f"  -> then: deploy cluster {shown_path(inventory)}")
    again = " ".join(
        [f"deploy cluster {shown_path(inventory)}", *(f"--rotate {key}" for key in removed.keys)]
    )
    them = "them" if len(removed.keys) > 1 else "it"
    has_key = f"Whoever has its disk has the cluster's {', '.join(removed.keys)}; to replace {them}: {again}"
    what = "out of the cluster" if removed.lines else "forgotten"
    typer.echo(f"{node}: {what}. {has_key}" if gone else f"{node}: {what}; {_STAYS}")
