"""The state of a site on a terminal: a table in colours, what is wrong below it."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from deploy.errors import Severity
from deploy.judge.site_status import SiteStatus
from deploy.show.status import HEADER, Mood, rows, site_lines, verdict

_STYLES = {Mood.QUIET: "dim", Mood.WARNING: "yellow", Mood.BAD: "bold red"}
_SEVERITIES = {Severity.ERROR: "red", Severity.WARNING: "yellow"}


def print_status(console: Console, status: SiteStatus) -> None:
    """Everything, as Text: what hosts say is never read as markup."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    found = rows(status)
    for title, *column in zip(HEADER, *found, strict=True):
        # A narrow terminal cuts the last column alone.
        width = None if title == HEADER[-1] else max(len(title), *(len(cell.text) for cell in column))
        table.add_column(title, no_wrap=True, min_width=width)
    for name, *cells in found:
        style = "" if name.mood is Mood.QUIET else _STYLES[name.mood]
        table.add_row(Text(name.text, style), *(Text(cell.text, _STYLES[cell.mood]) for cell in cells))
    console.print(table)
    for host in status.hosts:
        if host.findings:
            console.print()
        for finding in host.findings:
            what, _, hint = str(finding).partition("\n")
            console.print(Text(what, style=_SEVERITIES[finding.severity]), soft_wrap=True)
            console.print(Text(hint), soft_wrap=True)
    console.print()
    for line in site_lines(status):
        console.print(Text(line), soft_wrap=True)
    is_well = not (status.bad or status.unreachable)
    console.print(Text(verdict(status), style="bold green" if is_well else "bold red"), soft_wrap=True)
