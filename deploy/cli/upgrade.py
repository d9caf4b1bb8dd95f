"""``deploy upgrade``: the verb."""

import json
import time
from typing import Annotated

import typer

from deploy.cli.consent import ask_to_go_on
from deploy.cli.displays import Output, choose_display
from deploy.cli.parameters import (
    AsData,
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
from deploy.engine.batches import share
from deploy.engine.cluster import deploy_cluster
from deploy.engine.options import Options
from deploy.engine.reports import last_validation
from deploy.engine.upgrade import upgrade as upgrade_site
from deploy.errors import ExitCode
from deploy.show.plain import PlainDisplay
from deploy.show.upgrade import as_json, upgrade_lines


def upgrade(
    inventory: Inventory,
    *,
    batch: Annotated[
        str,
        typer.Option(
            "--batch", help="Nodes at once after the first: a number, or a share of each partition."
        ),
    ] = "10%",
    drains: Annotated[
        bool, typer.Option("--drain", help="Wait until a node has no jobs; otherwise they run on meanwhile.")
    ] = False,
    as_data: AsData = False,
    user: User = None,
    private_key: PrivateKey = None,
    forks: Forks = None,
    plain_ansible: PlainAnsible = False,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
    validates: Annotated[
        bool,
        typer.Option(
            "--validate/--no-validate",
            help="Validate the cluster at the end, compared with the last validation.",
        ),
    ] = True,
) -> None:
    """Bring the cluster to the release of Slurm that the site wants, while jobs run.

    Set slurm_packages_version, and slurm_packages_repository where the hosts' own package sources do not have
    it. What Slurm does not support in one hop is refused before anything changes. The wanted slurmctld judges
    the configuration and the wanted slurmdbd converts a dump of the database, both beside what runs. Then
    slurmdbd and slurmctld, which are backed up before, one node, the other nodes in batches, login nodes.

    The first step that fails halts it: a node that is not good stays drained, and what was not begun is as it
    was. The same command goes on, also where it was killed. It ends with a run of `deploy cluster`.

    Examples:
      deploy upgrade inventory.ini
      deploy upgrade inventory.ini --drain --batch 2

    """
    options = Options(
        user=user,
        private_key=private_key,
        forks=forks,
        plain_ansible=plain_ansible,
        extra=tuple(extra or ()),
        vault_password_file=vault_password_file,
    )
    came = upgrade_site(inventory, options, share(batch), say, drains=drains)
    typer.echo(json.dumps(as_json(came), indent=1) if as_data else "\n".join(upgrade_lines(came)))
    if came.is_nothing:
        raise typer.Exit(came.exit_code)
    # What programs read is the report alone.
    display = PlainDisplay(say) if as_data else choose_display(Output.PLAIN, options)
    summary = deploy_cluster(inventory, options, display, ask_to_go_on, say)
    code = came.exit_code if summary.exit_code is ExitCode.OK else summary.exit_code
    if validates and not as_data and code is ExitCode.OK:
        earlier = last_validation(inventory, time.time())
        code = validate_quickly(inventory, options, as_data=False, earlier=earlier).exit_code
    raise typer.Exit(code)
