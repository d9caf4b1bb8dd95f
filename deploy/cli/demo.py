"""``deploy demo``: a lab, a cluster on it, a job on that; from nothing to ``sacct`` in one command."""

import subprocess
import time
from pathlib import Path
from typing import Annotated

import typer

from deploy.cli.consent import ask_to_go_on
from deploy.cli.displays import choose_display
from deploy.cli.parameters import say
from deploy.engine.cluster import deploy_cluster
from deploy.engine.options import Options
from deploy.errors import ExitCode, error
from deploy.lab.enter import exec_command
from deploy.lab.state import container_name
from deploy.lab.up import Wish, bring_up

_NAME = "demo"
_USER = "alice"
_ROW = "JobID,JobName%24,Partition,NNodes,NodeList,AllocTRES%48,Elapsed,State,ExitCode"
_SECONDS_FOR_ACCOUNTING = 30.0


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
    options = Options()
    summary = deploy_cluster(outcome.inventory, options, choose_display(None, options), ask_to_go_on, say)
    if summary.exit_code is not ExitCode.OK:
        raise typer.Exit(summary.exit_code)
    job = f"demo-{int(time.time())}"
    _show("sinfo")
    _show("srun", "-N2", "--gpus-per-node=1", f"--job-name={job}", "nvidia-smi", "-L")
    seconds = time.monotonic() - began
    _wait_for_row(job)
    _show("sacct", "--allocations", f"--name={job}", f"--format={_ROW}")
    typer.echo(f"\n{seconds:.1f} seconds from start to the first finished job")
    typer.echo(f"look around: deploy lab ssh --name {_NAME} login1   remove it: make demo-down")


def _show(*command: str) -> None:
    """Runs a command as the user on the login node and shows both."""
    typer.echo(f"\n{_USER}@login1$ {' '.join(command)}")
    if _on_login(*command, capture=False).returncode != 0:
        raise error(
            "demo-command-failed",
            f"{command[0]} failed on the new cluster",
            where="login1",
            hint=f"look inside: deploy lab exec --name {_NAME} ctl1 -- journalctl -u slurmctld",
            exit_code=ExitCode.FAILED,
        )


def _wait_for_row(job: str) -> None:
    """Waits until the accounting has the job's end; slurmctld sends it some seconds later."""
    deadline = time.monotonic() + _SECONDS_FOR_ACCOUNTING
    command = ("sacct", "--allocations", "--noheader", f"--name={job}", "--format=State")
    while "COMPLETED" not in _on_login(*command, capture=True).stdout:
        if time.monotonic() > deadline:
            raise error(
                "demo-no-accounting",
                f"after {_SECONDS_FOR_ACCOUNTING:.0f} s sacct does not know the end of the job {job}",
                where="login1",
                hint=f"look inside: deploy lab exec --name {_NAME} ctl1 -- journalctl -u slurmdbd",
                exit_code=ExitCode.FAILED,
            )
        time.sleep(0.5)


def _on_login(*command: str, capture: bool) -> subprocess.CompletedProcess[str]:
    call = exec_command(container_name(_NAME, "login1"), command, user=_USER, terminal=False)
    return subprocess.run(call, stdin=subprocess.DEVNULL, capture_output=capture, text=True, check=False)
