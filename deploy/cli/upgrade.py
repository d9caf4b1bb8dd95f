"""``deploy upgrade``: the verb."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deploy.cli.consent import ask_to_go_on
from deploy.cli.displays import Output, choose_display
from deploy.cli.files import refuse_unwritable, write
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
from deploy.engine.batches import share
from deploy.engine.cluster import deploy_cluster
from deploy.engine.options import Options
from deploy.engine.upgrade import Outcome
from deploy.engine.upgrade import upgrade as upgrade_site
from deploy.engine.upgrade_back import go_back
from deploy.errors import ExitCode, error, shown_path
from deploy.show.plain import PlainDisplay
from deploy.show.upgrade import as_json, command_lines, upgrade_lines
from deploy.show.upgrade_page import as_html
from deploy.show.validation import lines as validation_lines
from deploy.site.node_lists import fold

if TYPE_CHECKING:
    from deploy.engine.proofs import Proof, Proofs


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
    back: Annotated[
        str | None,
        typer.Option(
            "--back", metavar="NODES", help="Give these nodes the release of before, and end there."
        ),
    ] = None,
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
            help="Validate the cluster quickly, before the first step and at the end, and compare.",
        ),
    ] = True,
    types_commands: Annotated[
        bool,
        typer.Option("--try", help="Type what users type (user-commands.yml), before and at the end, too."),
    ] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report as one self-contained page.")
    ] = None,
) -> None:
    """Bring the cluster to the release of Slurm that the site wants, while jobs run.

    Set slurm_packages_version, and slurm_packages_repository where the hosts' own package sources do not have
    it. What Slurm does not support in one hop is refused before anything changes. The wanted slurmctld judges
    the configuration and the wanted slurmdbd converts a dump of the database, both beside what runs. Then
    slurmdbd and slurmctld, which are backed up before, one node, the other nodes in batches, login nodes.

    The first step that fails halts it: a node that is not good stays drained, and what was not begun is as it
    was. The same command goes on, also where it was killed; --back NODES gives nodes the release of before,
    while their jobs run on. It ends with a run of `deploy cluster`.

    Examples:
      deploy upgrade inventory.ini
      deploy upgrade inventory.ini --drain --batch 2
      deploy upgrade inventory.ini --try --html upgrade.html
      deploy upgrade inventory.ini --back node1

    """
    options = Options(
        user=user,
        private_key=private_key,
        forks=forks,
        plain_ansible=plain_ansible,
        extra=tuple(extra or ()),
        vault_password_file=vault_password_file,
    )
    if back is not None:
        _went_back(inventory, options, back)
        return
    refuse_unwritable(html)
    before: list[Proof] = []

    def proves() -> None:
        if validates:
            say("what the cluster does for its users before the first step")
            before.append(_proof(inventory, options, types_commands=types_commands))
            _refuse_unfit(before[0], shown_path(inventory))

    came = upgrade_site(inventory, options, share(batch), say, drains=drains, proves=proves)
    if not as_data:
        typer.echo("\n".join(upgrade_lines(came)))
    if came.is_nothing:
        _say(came, None, as_data=as_data)
        raise typer.Exit(came.exit_code)
    code, proofs = _converged(inventory, options, came, as_data=as_data), None
    if validates:
        proofs = _proofs(inventory, options, before, types_commands=types_commands)
        code = code or proofs.exit_code
    _say(came, proofs, as_data=as_data)
    if html:
        write(html, as_html(came, proofs))
        say(f"wrote {html}")
    raise typer.Exit(code)


def _went_back(inventory: Path, options: Options, nodes: str) -> None:
    went = go_back(inventory, options, nodes, say)
    typer.echo(f"{fold(went.nodes)}: Slurm {went.release} again, and in service unless others hold it")


def _say(came: Outcome, proofs: "Proofs | None", *, as_data: bool) -> None:
    """The report for programs; of people, who have read what came of it, what was proved."""
    if as_data:
        typer.echo(json.dumps(as_json(came, proofs), indent=1))
    elif proofs:
        from deploy.cli.validate import show  # noqa: PLC0415

        typer.echo()
        show(proofs.after.validation, proofs.since)
        for line in command_lines(proofs):
            typer.echo(line)


def _converged(inventory: Path, options: Options, came: Outcome, *, as_data: bool) -> ExitCode:
    """The run of ``deploy cluster`` with which an upgrade ends."""
    # What programs read is the report alone.
    display = PlainDisplay(say) if as_data else choose_display(Output.PLAIN, options)
    summary = deploy_cluster(inventory, options, display, ask_to_go_on, say)
    return came.exit_code if summary.exit_code is ExitCode.OK else summary.exit_code


def _proof(inventory: Path, options: Options, *, types_commands: bool) -> "Proof":
    # The checks take a while to import, and not every upgrade comes to them.
    from deploy.cli.validate import progress  # noqa: PLC0415
    from deploy.engine.proofs import prove  # noqa: PLC0415

    return prove(inventory, options, types_commands=types_commands, progress=progress)


def _proofs(
    inventory: Path, options: Options, before: Sequence["Proof"], *, types_commands: bool
) -> "Proofs":
    from deploy.engine.proofs import Proofs  # noqa: PLC0415

    after = _proof(inventory, options, types_commands=types_commands)
    return Proofs(after, before[0] if before else None)


def _refuse_unfit(found: "Proof", inventory: str) -> None:
    """Raises DeployError where the cluster is not as it should be, with what is wrong."""
    if found.exit_code is ExitCode.OK:
        return
    for line in validation_lines(found.validation):
        say(line)
    raise error(
        "upgrade-unfit",
        "the cluster does not pass its quick validation, so nothing was begun",
        where=inventory,
        hint=f"put right what is named above; or, knowing it: deploy upgrade {inventory} --no-validate",
        exit_code=ExitCode.FAILED,
    )
