"""``deploy report``: what a recorded run did."""

import json
from pathlib import Path
from typing import Annotated

import typer

from deploy.durable import write_private
from deploy.engine.reports import run_of, runs_of
from deploy.errors import error
from deploy.show.page import as_html
from deploy.show.report import as_json, as_list_line, as_text


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
    if list_runs:
        for recorded in runs_of(inventory):
            typer.echo(as_list_line(recorded))
        return
    chosen = run_of(inventory, run)
    if html:
        _write(html, as_html(chosen))
        typer.echo(f"wrote {html}", err=as_data)
    if as_data:
        typer.echo(json.dumps(as_json(chosen), indent=1))
    elif not html:
        typer.echo(as_text(chosen))


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
