"""Which recorded run is meant, and which validation."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deploy.errors import error
from deploy.run.journal import RecordedRun, last_run_of_user, recorded_runs, state_directory
from deploy.site.inventory import existing_inventory, site_directory
from deploy.validate.record import last_before

LAST = "last"
"""Stands for the last one of all."""


def runs_of(inventory: Path | None) -> list[RecordedRun]:
    """The recorded runs of a site, the oldest first; without an inventory, of that of the user's last run.

    Raises DeployError ``run-not-found``.
    """
    return recorded_runs(site_directory(existing_inventory(inventory)) if inventory else _last_site())


def run_of(inventory: Path | None, wanted: str | None) -> RecordedRun:
    """The run with an id that begins or ends with ``wanted``, else the last one: of a site, or of the user.

    Raises DeployError ``run-not-found``.
    """
    last = None if inventory or wanted else last_run_of_user()
    if last:
        return last
    runs = runs_of(inventory)
    matching = [run for run in runs if wanted is None or run.id.startswith(wanted) or run.id.endswith(wanted)]
    if matching:
        return matching[-1]
    if runs:
        message, hint = f"no recorded run is called {wanted}", "see the runs with: deploy report --list"
    else:
        message, hint = "no run is recorded for this site", "make one with: deploy cluster INVENTORY"
    raise error(
        "run-not-found", message, where=str(site_directory(inventory) if inventory else ""), hint=hint
    )


def last_validation(inventory: Path, before: float) -> Mapping[str, Any] | None:
    """The last validation of a site that began before a time, in seconds since the epoch."""
    return last_before(state_directory(site_directory(existing_inventory(inventory))), before)


def validation_before(inventory: Path, wanted: str) -> Mapping[str, Any]:
    """The last validation of a site before a run of this id began; of ``last``, the last one of all.

    Raises DeployError ``run-not-found``, and ``validation-not-found``.
    """
    moment = time.time() if wanted == LAST else run_of(inventory, wanted).started or 0.0
    found = last_validation(inventory, moment)
    if found is None:
        before = "" if wanted == LAST else f" before the run {wanted}"
        raise error(
            "validation-not-found",
            f"no validation with all checks is kept{before}",
            where=str(site_directory(inventory)),
            hint="make one, for the next time: deploy validate INVENTORY",
        )
    return found


def _last_site() -> Path:
    last = last_run_of_user()
    if last is None:
        raise error(
            "run-not-found",
            "you have no recorded run",
            hint="name an inventory: deploy report INVENTORY, or make a run: deploy cluster INVENTORY",
        )
    return last.path.parents[2]
