"""``deploy rehearse``: a site on local containers, validated, and what its users type there."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from deploy.cli.consent import go_on
from deploy.cli.displays import Output, choose_display
from deploy.cli.parameters import ExtraVariables, Inventory, VaultPasswordFile, say
from deploy.cli.quick_validation import validate_quickly
from deploy.cli.try_commands import CommandsFile, JsonFile, echo, report
from deploy.engine.cluster import deploy_cluster
from deploy.engine.options import Options
from deploy.engine.trial import Trial, type_commands
from deploy.errors import ExitCode, shown_path
from deploy.lab.means import Means
from deploy.lab.rehearsed_site import Rehearsed, rehearsed, vaulted
from deploy.lab.stage import default_name, staged
from deploy.lab.up import MOST_GPUS
from deploy.site.checks import check_site
from deploy.site.inventory import Site, read_site
from deploy.site.node_lists import fold
from deploy.site.user_commands import Command, check_sizes, default_file, read_user_commands
from deploy.site.variables import read_extra_variables
from deploy.validate.record import as_data

_NOT_OF_CONTAINERS = ("speed",)
"""Checks that say nothing of machines that share the CPUs of one."""


def rehearse(
    inventory: Inventory,
    *,
    name: Annotated[
        str | None, typer.Option(help="Name of the lab.", show_default="rehearsal-DIRECTORY")
    ] = None,
    release: Annotated[str, typer.Option(help="trixie or bookworm.")] = "trixie",
    most: Annotated[int, typer.Option("--nodes", min=1, help="The most machines of each kind.")] = 2,
    gpus: Annotated[
        int, typer.Option(min=0, max=MOST_GPUS, help="Simulated GPUs of a node of which none are declared.")
    ] = 1,
    leave_out: Annotated[
        list[str] | None,
        typer.Option(metavar="GROUP", help="Rehearse as if this group were empty; may be repeated."),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the machines running afterwards.")] = False,
    commands: CommandsFile = None,
    json_file: JsonFile = None,
    output: Annotated[
        Output | None, typer.Option(help="live on a terminal, else plain; jsonl for programs.")
    ] = None,
    seconds: Annotated[
        int, typer.Option(min=1, help="The most that a command may take, and then its jobs.")
    ] = 180,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Deploy a site on local containers that have its own names, and type there what its users type.

    The machines are a lab with at most --nodes of each kind of host; a kind is what is in the same groups.
    Of the site its groups and variables are taken, and nothing of how its machines are reached: none of them
    is connected to, and its secrets are not read. Before users' commands the cluster is validated, quickly.
    Afterwards all is removed, unless --keep is given.
    Exit code 0: deployed, nothing failed in the validation, and all commands came out as expected.

    Examples:
      deploy rehearse inventory.ini
      deploy rehearse inventory.ini --release bookworm --nodes 1 --keep
      deploy rehearse inventory.ini --leave-out slurm-container

    """
    variables = read_extra_variables(tuple(extra or ()))
    site = read_site(inventory, vault_password_file=vault_password_file, extra_variables=variables)
    for warning in check_site(site, reads_secrets=False):
        typer.echo(f"deploy: {warning}", err=True)
    file = commands or default_file(site)
    content = read_user_commands(file) if commands or file.is_file() else {"shared": [], "commands": []}
    check_sizes(content, site, file)
    what = rehearsed(site, content["shared"], most=most, gpus=gpus, without=leave_out or ())
    lab = name or default_name(site)
    _announce(what, lab)
    means = Means(what, lab, release, content, _say)
    with staged(what, lab, release, _say, is_kept=keep) as stage:
        exit_code = _perform(stage, site, means, output=output, json_file=json_file, seconds=seconds)
    raise typer.Exit(exit_code)


def _perform(
    inventory: Path,
    site: Site,
    means: Means,
    *,
    output: Output | None,
    json_file: Path | None,
    seconds: float,
) -> ExitCode:
    options = Options()
    summary = deploy_cluster(inventory, options, choose_display(output, options), go_on, say)
    if summary.exit_code is not ExitCode.OK:
        return summary.exit_code
    found = validate_quickly(inventory, options, as_data=output is Output.JSONL, without=_NOT_OF_CONTAINERS)
    trial = _type(read_site(inventory), means, seconds)
    about = {"inventory": shown_path(site.inventory), "validation": as_data(found)}
    report(replace(trial, about=trial.about | about), json_file)
    return max(found.exit_code, trial.exit_code)


def _type(site: Site, means: Means, seconds: float) -> Trial:
    """Users' commands; those that want larger nodes again, where nodes pretend to have the site's sizes."""

    def typed(commands: list[Command]) -> Trial:
        return type_commands(site, commands, Options(), in_containers=True, seconds=seconds, tell=echo)

    commands = means.prepare(means.content["commands"])
    trial = typed(commands)
    for with_absent in (False, True):
        again = [command for command in commands if command["id"] in trial.too_large]
        if again and any(size.absent or not with_absent for size in means.sizes):
            here = means.pretend(with_absent=with_absent)
            trial = trial.with_later(typed(again), here)
    return trial


def _announce(what: Rehearsed, lab: str) -> None:
    _say(f"rehearsing {shown_path(what.site.inventory)} as lab {lab}: {len(what.hosts)} machines")
    if what.left_out:
        _say(f"not rehearsed (--nodes): {fold(what.left_out)}")
    if names := vaulted(what):
        _say(f"left out, being in the vault: {', '.join(names)}")


def _say(line: str) -> None:
    typer.echo(line, err=True)
