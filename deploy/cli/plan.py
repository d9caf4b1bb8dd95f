"""``deploy plan``: the verb."""

import json
import sys

import typer

from deploy.cli.displays import Output, choose_display
from deploy.cli.parameters import (
    AsData,
    AskBecomePass,
    AskPass,
    ExtraVariables,
    Forks,
    Inventory,
    LimitOfRun,
    NewSecrets,
    PlainAnsible,
    PrivateKey,
    Rotate,
    SkipTags,
    Tags,
    User,
    VaultPasswordFile,
    ask_password,
    say,
)
from deploy.engine.cluster import plan_cluster
from deploy.engine.display import Display
from deploy.engine.options import Options, Rotation
from deploy.show.plain import PlainDisplay
from deploy.show.plan_outcome import plan_json, plan_lines
from deploy.site.listing_process import ListingProcess


def plan(
    context: typer.Context,
    inventory: Inventory,
    *,
    limit: LimitOfRun = None,
    tags: Tags = None,
    skip_tags: SkipTags = None,
    new_secrets: NewSecrets = False,
    rotate: Rotate = None,
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
    """Show what `deploy cluster` would do: every change, its difference, what it disturbs, which jobs.

    The impact of a change is one of none, reconfigure, restart, drain, reboot and kills jobs. Nothing is
    changed. Exit code 0: nothing to do; 3: changes are pending; 1: something could not be previewed.

    Examples:
      deploy plan inventory.ini
      deploy plan inventory.ini --limit node3
      deploy plan inventory.ini --rotate munge_key
      deploy plan inventory.ini --json

    """
    options = Options(
        listing=context.find_object(ListingProcess),
        limit=limit,
        tags=tags,
        skip_tags=skip_tags,
        new_secrets=new_secrets or bool(rotate),
        rotation=Rotation(tuple(rotate or ())),
        user=user,
        private_key=private_key,
        forks=forks,
        plain_ansible=plain_ansible,
        extra=tuple(extra or ()),
        vault_password_file=vault_password_file,
        connection_password=ask_password("SSH", is_wanted=ask_pass),
        become_password=ask_password("sudo", is_wanted=ask_become_pass),
    )
    previewed = plan_cluster(inventory, options, _display(options, as_data=as_data), say)
    if as_data:
        typer.echo(json.dumps(plan_json(previewed), indent=1))
    else:
        typer.echo("\n".join(plan_lines(previewed)))
    raise typer.Exit(previewed.exit_code)


def _display(options: Options, *, as_data: bool) -> Display:
    """A terminal sees how far the question is; everyone else only the answer."""
    if sys.stdout.isatty() and not as_data:
        return choose_display(Output.LIVE, options)
    return PlainDisplay(lambda _: None)
