"""``deploy report``: what a recorded run did."""

import json
from pathlib import Path
from typing import Annotated

import typer

from deploy.errors import error
from deploy.run.journal import RecordedRun, last_run_of_user, recorded_runs
from deploy.show.report import as_html, as_json, as_text, summary_of


def report(
    inventory: Annotated[
        Path | None, typer.Argument(help="The site's inventory; without it, your last run on any site.")
    ] = None,
    *,
    as_data: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write one self-contained page to this file.")] = None,
    run: Annotated[str | None, typer.Option(help="A run's id, or the end of it.")] = None,
    list_runs: Annotated[bool, typer.Option("--list", help="List the recorded runs.")] = False,
) -> None:
    """Show what a run did: figures per host, failures, slowest tasks, and a page with the timeline.

    Examples:
      deploy report

      deploy report inventory.ini --html report.html

      deploy report inventory.ini --json

    """
    runs = _runs(inventory)
    if list_runs:
        for recorded in runs:
            typer.echo(f"{recorded.path.name}  {summary_of(recorded).outcome.value}")
        return
    chosen = [r for r in runs if run is None or r.path.name.endswith(run) or r.path.name.startswith(run)]
    if not chosen:
        raise error(
            "run-not-found",
            "no such run is recorded" if runs else "no run is recorded",
            where=str(inventory or ""),
            hint="deploy report INVENTORY --list names the runs there are"
            if runs
            else "deploy cluster INVENTORY",
        )
    if html:
        html.write_text(as_html(chosen[-1]), encoding="utf-8")
        typer.echo(f"wrote {html}", err=as_data)
    if as_data:
        typer.echo(json.dumps(as_json(chosen[-1]), indent=1))
    elif not html:
        typer.echo(as_text(chosen[-1]))


def _runs(inventory: Path | None) -> list[RecordedRun]:
    if inventory is None:
        last = last_run_of_user()
        return [last] if last else []
    if not inventory.exists():
        raise error("inventory-not-found", "no such inventory", where=str(inventory), hint="check the path")
    resolved = inventory.resolve()
    return recorded_runs(resolved if resolved.is_dir() else resolved.parent)
