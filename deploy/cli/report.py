"""``deploy report``: what a recorded run did."""

import json
from pathlib import Path
from typing import Annotated

import typer

from deploy.durable import write_private
from deploy.errors import error
from deploy.run.journal import RecordedRun, last_run_of_user, recorded_runs
from deploy.show.page import as_html
from deploy.show.report import as_json, as_list_line, as_text
from deploy.site.inventory import existing_inventory, site_directory


def report(
    inventory: Annotated[
        Path | None,
        typer.Argument(
            metavar="INVENTORY", help="The site's inventory; without it, your last run on any site."
        ),
    ] = None,
    *,
    as_data: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write one self-contained page to this file.")] = None,
    run: Annotated[str | None, typer.Option(help="A run's id, or the beginning or end of it.")] = None,
    list_runs: Annotated[bool, typer.Option("--list", help="List the recorded runs of the site.")] = False,
) -> None:
    """Show what a run did: figures per host, failures, slowest tasks, and a page with the timeline.

    Examples:
      deploy report
      deploy report inventory.ini --html report.html
      deploy report inventory.ini --json

    """
    last = None if inventory else _last_run()
    site = last.path.parents[2] if last else site_directory(existing_inventory(inventory or Path()))
    if list_runs:
        for recorded in recorded_runs(site):
            typer.echo(as_list_line(recorded))
        return
    chosen = last if last and run is None else _chosen(recorded_runs(site), run, site)
    if html:
        _write(html, as_html(chosen))
        typer.echo(f"wrote {html}", err=as_data)
    if as_data:
        typer.echo(json.dumps(as_json(chosen), indent=1))
    elif not html:
        typer.echo(as_text(chosen))


def _last_run() -> RecordedRun:
    last = last_run_of_user()
    if last is None:
        raise error(
            "run-not-found",
            "you have no recorded run",
            hint="name an inventory: deploy report INVENTORY, or make a run: deploy cluster INVENTORY",
        )
    return last


def _chosen(runs: list[RecordedRun], wanted: str | None, site: Path) -> RecordedRun:
    matching = [run for run in runs if wanted is None or run.id.startswith(wanted) or run.id.endswith(wanted)]
    if matching:
        return matching[-1]
    if runs:
        message, hint = f"no recorded run is called {wanted}", "see the runs with: deploy report --list"
    else:
        message, hint = "no run is recorded for this site", "make one with: deploy cluster INVENTORY"
    raise error("run-not-found", message, where=str(site), hint=hint)


def _write(path: Path, page: str) -> None:
    try:
        write_private(path, page)
    except OSError as problem:
        raise error(
            "report-not-written",
            f"the page cannot be written: {problem.strerror}",
            where=str(path),
            hint="name a file in a directory you may write to: --html FILE",
        ) from None
