"""``deploy lab``: a cluster of local containers to rehearse on."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from deploy.cli.verbs import plain_typer
from deploy.lab.down import take_down
from deploy.lab.enter import execute, login
from deploy.lab.image import ensure_image, start_command
from deploy.lab.machine import inspect_machine
from deploy.lab.power import power_off, power_on
from deploy.lab.state import all_labs
from deploy.lab.up import Wish, bring_up

lab_app = plain_typer(
    no_args_is_help=True, help="A cluster of local containers to rehearse on: make it, use it, throw it away."
)

_PASS_THROUGH = {"allow_interspersed_args": False}

Name = Annotated[str, typer.Option("--name", help="Name of the lab.")]
Host = Annotated[str, typer.Argument(metavar="HOST", help="A machine of the lab, such as ctl1 or node1.")]


def _say(line: str) -> None:
    typer.echo(line, err=True)


@lab_app.command()
def up(
    *,
    name: Name = "lab",
    directory: Annotated[
        Path | None, typer.Option("--dir", help="Directory for inventory and keys.", show_default="./NAME")
    ] = None,
    nodes: Annotated[int | None, typer.Option(help="Compute nodes.", show_default="2")] = None,
    controllers: Annotated[int | None, typer.Option(help="Controllers, up to 3.", show_default="1")] = None,
    gpus: Annotated[int | None, typer.Option(help="Simulated GPUs per node.", show_default="2")] = None,
    release: Annotated[
        str | None,
        typer.Option(
            help="trixie, bookworm, noble, jammy or a container image; with uml trixie, bookworm or forky.",
            show_default="trixie",
        ),
    ] = None,
    machines: Annotated[
        str | None,
        typer.Option(help="containers, or uml: with kernels of their own.", show_default="containers"),
    ] = None,
    write_inventory: Annotated[
        bool, typer.Option("--write-inventory", help="Add new nodes to the inventory of an existing lab.")
    ] = False,
    isolated: Annotated[
        bool, typer.Option("--isolated", help="A new lab whose machines reach nothing but this machine.")
    ] = False,
    monitoring: Annotated[
        bool, typer.Option("--monitoring", help="A new lab with Prometheus and Alertmanager on ctl1.")
    ] = False,
    package_cache: Annotated[
        bool, typer.Option("--package-cache", help="A new lab whose ctl1 fetches each package for all, once.")
    ] = False,
) -> None:
    """Make a lab, add nodes to it, or power its machines on.

    Examples:
      deploy lab up --dir rehearsal --nodes 3 --gpus 2 --release trixie
      deploy lab up --machines uml --nodes 1
      deploy lab up --nodes 4 --write-inventory

    """
    outcome = bring_up(
        Wish(
            name=name,
            directory=directory,
            nodes=nodes,
            controllers=controllers,
            gpus=gpus,
            release=release,
            machines=machines,
            write_inventory=write_inventory,
            isolated=isolated,
            monitoring=monitoring,
            package_cache=package_cache,
        ),
        _say,
    )
    if outcome.to_add:
        typer.echo(f"Add these lines to {outcome.inventory} (or type the same with --write-inventory):\n")
        typer.echo(outcome.to_add + "\n")
    if outcome.to_change:
        typer.echo(f"Other addresses stand in {outcome.inventory}; these are right:\n")
        typer.echo(outcome.to_change + "\n")
    typer.echo(f"Lab {name} is up: {', '.join(outcome.lab.names)}")
    typer.echo(f"Next: deploy cluster {outcome.inventory}")


@lab_app.command()
def down(
    *,
    name: Name = "lab",
    delete_dir: Annotated[
        bool, typer.Option("--delete-dir", help="Also delete its inventory, group_vars and run records.")
    ] = False,
) -> None:
    """Remove a lab: machines, network, /home and keys.

    Examples:
      deploy lab down
      deploy lab down --name rehearsal --delete-dir

    """
    removal = take_down(name, delete_directory=delete_dir)
    typer.echo(f"Lab {name} is gone.")
    if removal.is_of_a_site and delete_dir:
        typer.echo("Nothing was deleted in its directory: it has no inventory of a lab.")
    if removal.kept:
        typer.echo(f"Left in {removal.directory}: {', '.join(removal.kept)}")


@lab_app.command("list")
def list_labs() -> None:
    """Show every lab with its machines, their state and address.

    Examples:
      deploy lab list

    """
    inspect_machine()
    labs = all_labs()
    if not labs:
        typer.echo("No labs. Make one: deploy lab up")
    for lab in labs:
        typer.echo(f"{lab.name}  ({lab.machines}, {lab.release}, {lab.gpus} GPUs per node)  {lab.directory}")
        for host in lab.hosts:
            typer.echo(f"  {host.name:<10} {host.address:<15} {host.state}")


@lab_app.command("exec", context_settings=_PASS_THROUGH)
def exec_in(
    host: Host,
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="The command, after --.")],
    name: Name = "lab",
    user: Annotated[str | None, typer.Option(help="Run as this user instead of root.")] = None,
) -> None:
    """Run a command on a machine; its exit code becomes ours.

    Examples:
      deploy lab exec ctl1 -- sinfo
      deploy lab exec --user alice login1 -- srun -N2 --gpus-per-node=1 nvidia-smi -L

    """
    words = command[1:] if command[0] == "--" else command
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    raise typer.Exit(execute(name, host, words, user=user, terminal=terminal))


@lab_app.command()
def ssh(host: Host, name: Name = "lab") -> None:
    """Log in to a machine as its admin user.

    Examples:
      deploy lab ssh login1

    """
    raise typer.Exit(login(name, host))


@lab_app.command()
def stop(host: Host, name: Name = "lab") -> None:
    """Power a machine off at once, as if someone pulled the plug.

    Examples:
      deploy lab stop node2

    """
    power_off(name, host)


@lab_app.command()
def start(
    host: Host,
    name: Name = "lab",
    kernel_line: Annotated[
        str,
        typer.Option(
            metavar="WORDS",
            help="Words for the kernel of a machine that has one of its own, until it is started anew.",
        ),
    ] = "",
) -> None:
    """Power a machine on and wait until it lets the admin in.

    Examples:
      deploy lab start node2
      deploy lab start node2 --kernel-line cgroup_disable=memory

    """
    power_on(name, host, kernel_line)


@lab_app.command()
def image(
    release: Annotated[
        str, typer.Option(help="trixie, bookworm, noble, jammy or a container image.")
    ] = "trixie",
) -> None:
    """Build the machines' image if needed; print its name and the command that boots it.

    Examples:
      deploy lab image
      deploy lab image --release bookworm

    """
    machine = inspect_machine()
    typer.echo(ensure_image(release))
    typer.echo(shlex.join(start_command(machine)))
