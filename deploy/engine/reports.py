"""Which recorded run is meant."""

from pathlib import Path

from deploy.errors import error
from deploy.run.journal import RecordedRun, last_run_of_user, recorded_runs
from deploy.site.inventory import existing_inventory, site_directory


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


def _last_site() -> Path:
    last = last_run_of_user()
    if last is None:
        raise error(
            "run-not-found",
            "you have no recorded run",
            hint="name an inventory: deploy report INVENTORY, or make a run: deploy cluster INVENTORY",
        )
    return last.path.parents[2]
