"""``deploy cluster``: the verb."""

from functools import partial
from typing import Annotated

import typer

from deploy.cli.consent import ask_to_go_on, go_on
from deploy.cli.displays import Output, choose_display
from deploy.cli.parameters import (
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
from deploy.cli.quick_validation import validate_quickly
from deploy.engine.cluster import deploy_cluster
from deploy.engine.options import Options, Rotation
from deploy.errors import ExitCode, error
from deploy.site.listing_process import ListingProcess


def cluster(
    context: typer.Context,
    inventory: Inventory,
    *,
    limit: LimitOfRun = None,
    tags: Tags = None,
    skip_tags: SkipTags = None,
    check: Annotated[
        bool, typer.Option("--check", "-C", help="Say what would change; change nothing.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", "-D", help="Show how files change.")] = False,
    user: User = None,
    private_key: PrivateKey = None,
    ask_pass: AskPass = False,
    ask_become_pass: AskBecomePass = False,
    forks: Forks = None,
    plain_ansible: PlainAnsible = False,
    extra: ExtraVariables = None,
    verbose: Annotated[int, typer.Option("--verbose", "-v", count=True, help="More; repeat for more.")] = 0,
    vault_password_file: VaultPasswordFile = None,
    full: Annotated[
        bool, typer.Option("--full", help="Run every phase, also where nothing changed since the last run.")
    ] = False,
    new_secrets: NewSecrets = False,
    rotate: Rotate = None,
    batch: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Change compute nodes in batches, drained and without jobs: 2, or 10% of each partition.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Go on although running jobs would be lost.")
    ] = False,
    validates: Annotated[
        bool, typer.Option("--validate/--no-validate", help="Validate a whole cluster after a change.")
    ] = True,
    output: Annotated[
        Output | None, typer.Option(help="live on a terminal, else plain; jsonl for programs.")
    ] = None,
) -> None:
    """Turn the machines of an inventory into a cluster, or bring it up to date.

    Running it again is always safe: what is as it should be stays untouched, and so do running jobs. A change
    that would lose jobs is named with the jobs, and made only after a typed yes, or with --yes.

    Hosts keep a record of what was converged. Where it still holds and the site says the same, nothing is run
    again: that costs a second or two.

    Where a host has a munge key or a password that this site does not know, the run is refused before
    anything changes: most likely this is a copy of the site without its secrets.yml. With --new-secrets all
    hosts change over to this site's; running jobs go on. With --rotate the site gets another secret first, in
    place of the one in its secrets.yml.

    With --batch, compute nodes on which something changes come after all other hosts and in batches: drained,
    without jobs, converged, registered with Slurm and well before the next begin. It is for what disturbs
    jobs, as another NVIDIA driver. At the first batch that is not good it stops: bad nodes stay drained, what
    was not begun is as it was, and the same command goes on.

    A run that changed something ends with `deploy validate --quick`, unless it was limited to some hosts or
    tags: a cluster that was deployed and does not work is not a success.

    Examples:
      deploy cluster inventory.ini
      deploy cluster inventory.ini --check --diff
      deploy cluster inventory.ini --limit node3
      deploy cluster inventory.ini --batch 10%
      deploy cluster inventory.ini --rotate munge_key

    """
    options = Options(
        listing=context.find_object(ListingProcess),
        limit=limit,
        tags=tags,
        skip_tags=skip_tags,
        check=check,
        full=full,
        batch=batch,
        may_lose_jobs=yes,
        diff=diff,
        new_secrets=new_secrets or bool(rotate),
        rotation=Rotation(tuple(rotate or ())),
        user=user,
        private_key=private_key,
        forks=forks,
        plain_ansible=plain_ansible,
        extra=tuple(extra or ()),
        verbose=verbose,
        vault_password_file=vault_password_file,
        connection_password=ask_password("SSH", is_wanted=ask_pass),
        become_password=ask_password("sudo", is_wanted=ask_become_pass),
    )
    agrees = go_on if yes else ask_to_go_on
    if batch is None:
        summary = deploy_cluster(inventory, options, choose_display(output, options), agrees, say)
    else:
        _refuse_with_batches(options)
        # Most runs have no batches, and one that finds nothing to do is over within a second.
        from deploy.engine.batches import share  # noqa: PLC0415
        from deploy.engine.rolling import deploy_in_batches  # noqa: PLC0415

        displays = partial(choose_display, output, options)
        summary = deploy_in_batches(inventory, options, share(batch), displays, agrees, say=say)
    code = summary.exit_code
    if validates and code is ExitCode.OK and summary.changed and options.is_whole and not (limit or check):
        code = validate_quickly(inventory, options, as_data=output is Output.JSONL).exit_code
    raise typer.Exit(code)


def _refuse_with_batches(options: Options) -> None:
    if options.check or options.tags or options.skip_tags or options.new_secrets:
        raise error(
            "invalid-option",
            "batches are for whole phases of a cluster that is there, and change it",
            where="--batch",
            hint="without --check, --tags, --skip-tags, --new-secrets; deploy plan previews a change",
        )
