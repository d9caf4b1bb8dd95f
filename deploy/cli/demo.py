"""``deploy demo``: a lab, a cluster on it, a job on that; from nothing to ``sacct`` in one command."""

import time
from pathlib import Path
from typing import Annotated

import typer

from deploy.cli.consent import ask_to_go_on
from deploy.cli.displays import choose_display
from deploy.cli.parameters import say
from deploy.engine.cluster import deploy_cluster
from deploy.engine.options import Options
from deploy.errors import ExitCode
from deploy.lab.first_job import USER, type_command, wait_for_row
from deploy.lab.reach import refuse_other_machines
from deploy.lab.up import Wish, bring_up

_NAME = "demo"
_ROW = "JobID,JobName%24,Partition,NNodes,NodeList,AllocTRES%48,Elapsed,State,ExitCode"


def demo(
    *,
    directory: Annotated[Path, typer.Option("--dir", help="Directory of the inventory.")] = Path(_NAME),
    release: Annotated[str, typer.Option(help="trixie or bookworm.")] = "trixie",
) -> None:
    """Boot a lab named demo, deploy a cluster on it, run a job as an ordinary user.

    Again on a demo that is there, it brings it up to date and runs another job.

    Examples:
      deploy demo
      deploy demo --release bookworm
      deploy lab down --name demo --delete-dir

    """
    began = time.monotonic()
    outcome = bring_up(Wish(_NAME, directory.resolve(), nodes=2, gpus=2, release=release), typer.echo)
    refuse_other_machines(outcome.inventory, outcome.lab)
    options = Options()
    summary = deploy_cluster(outcome.inventory, options, choose_display(None, options), ask_to_go_on, say)
    if summary.exit_code is not ExitCode.OK:
        raise typer.Exit(summary.exit_code)
    job = f"demo-{int(time.time())}"
    _show("sinfo")
    _show("srun", "-N2", "--gpus-per-node=1", f"--job-name={job}", "nvidia-smi", "-L")
    seconds = time.monotonic() - began
    wait_for_row(_NAME, job)
    _show("sacct", "--allocations", f"--name={job}", f"--format={_ROW}")
    typer.echo(f"\n{seconds:.1f} seconds from start to the first finished job")
    typer.echo(f"look around: deploy lab ssh --name {_NAME} login1")
    down = f"deploy lab down --name {_NAME} --delete-dir"
    typer.echo(f"remove it: make demo-down, or {down}   (make's deploy is .venv/bin/deploy)")


def _show(*command: str) -> None:
    """Shows a command and what came of it."""
    typer.echo(f"\n{USER}@login1$ {' '.join(command)}")
    type_command(_NAME, *command)
