"""Asks before jobs are lost."""

import signal
import sys

import typer

from deploy.errors import ExitCode, error
from deploy.judge.forecast import Forecast

_WORD = "yes"


def ask_to_go_on(forecast: Forecast, command: str) -> None:
    """Returns when the admin types yes. Raises DeployError ``would-lose-jobs`` otherwise.

    ``command`` is what was typed, to be typed again.
    """
    if sys.stdin.isatty() and sys.stdout.isatty():
        # A run turns Ctrl-C into an order to Ansible; here it means no.
        order = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            answer = typer.prompt(
                f"Jobs would be lost. Type {_WORD} to go on", default="no", show_default=False
            )
        finally:
            signal.signal(signal.SIGINT, order)
        if answer.strip().lower() == _WORD:
            return
    raise error(
        "would-lose-jobs",
        "nothing was changed: " + "; ".join(_reasons(forecast)),
        hint=f"wait until they are done (squeue), or go on with: {command} --yes",
        exit_code=ExitCode.CHANGES_PENDING,
    )


def go_on(_: Forecast, __: str) -> None:
    """The admin said --yes."""


def _reasons(forecast: Forecast) -> list[str]:
    if forecast.jobs is None:
        parameters = ", ".join(loss.parameter for loss in forecast.losses)
        return [f"a change of {parameters} loses jobs, and Slurm does not answer which there are"]
    return [
        f"a change of {loss.parameter} ({loss.before} -> {loss.after or 'removed'}) would lose "
        + ", ".join(f"job {job.id} of {job.user}" for job in loss.jobs)
        for loss in forecast.losses
        if loss.jobs
    ]
