"""``deploy try``: what users of a site type, and whether it does what they expect."""

import json
from pathlib import Path
from typing import Annotated

import typer

from deploy.cli.parameters import ExtraVariables, Inventory, PrivateKey, User, VaultPasswordFile
from deploy.durable import write_private
from deploy.engine.options import Options
from deploy.engine.trial import SECONDS, Outcome, Trial, bad_option, chosen_commands, earlier, type_commands
from deploy.show.user_outcomes import as_json, changed, line, table
from deploy.site.inventory import read_site
from deploy.site.user_commands import default_file, read_user_commands
from deploy.site.variables import read_extra_variables

CommandsFile = Annotated[
    Path | None,
    typer.Option("--commands", metavar="FILE", help="The commands; default: user-commands.yml beside it."),
]
JsonFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write everything into a file, for programs.")
]


def try_commands(
    inventory: Inventory,
    *,
    commands: CommandsFile = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="ID", help="Only this one; may be repeated.")
    ] = None,
    json_file: JsonFile = None,
    compare: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Say what changed since this, the --json of before.")
    ] = None,
    containers: Annotated[
        bool, typer.Option("--containers", help="Leave out what cannot run on machines that are containers.")
    ] = False,
    seconds: Annotated[
        int, typer.Option(min=1, help="The most that a command may take, and then its jobs.")
    ] = SECONDS,
    user: User = None,
    private_key: PrivateKey = None,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Type what users type, on the first login node, and say whether it came out as they expect.

    The commands and their outcomes are in user-commands.yml (docs/user-commands.md). Each is typed as its
    user in a directory of its own, which is removed afterwards with all its jobs. Try them before and after a
    change.
    Exit code 0: all came out as expected; 1: one did not; 2: they could not be typed.

    Examples:
      deploy try inventory.ini --json before.json
      deploy try inventory.ini --compare before.json
      deploy try inventory.ini --only sinfo

    """
    options = Options(
        user=user, private_key=private_key, extra=tuple(extra or ()), vault_password_file=vault_password_file
    )
    before = earlier(compare) if compare else None
    variables = read_extra_variables(options.extra)
    site = read_site(inventory, vault_password_file=vault_password_file, extra_variables=variables)
    content = read_user_commands(commands or default_file(site))
    chosen = chosen_commands(content["commands"], only, commands or default_file(site))
    trial = type_commands(site, chosen, options, in_containers=containers, seconds=seconds, tell=echo)
    report(trial, json_file)
    if before is not None:
        after = as_json(trial.about, trial.outcomes)["commands"]
        for text in changed(before, {outcome["id"]: outcome for outcome in after}):
            typer.echo(text)
    raise typer.Exit(trial.exit_code)


def echo(outcome: Outcome) -> None:
    """Shows a command that has come out."""
    typer.echo(line(outcome))


def report(trial: Trial, json_file: Path | None) -> None:
    """Shows the table of what was typed, and writes the file for programs."""
    if trial.outcomes:
        typer.echo()
        for text in table(trial.outcomes):
            typer.echo(text)
    if json_file:
        text = json.dumps(as_json(trial.about, trial.outcomes), indent=1) + "\n"
        try:
            write_private(json_file, text)
        except OSError as problem:
            raise bad_option(json_file, f"cannot be written: {problem.strerror}", "--json") from None
