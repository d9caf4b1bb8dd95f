"""docs/alerts.md: what every alert means, what to look at and what to type."""

from collections.abc import Iterator

from deploy.monitoring.alert import Alert
from deploy.monitoring.alerts import CHAPTERS

_INTRODUCTION = """\
# Alerts

What Prometheus reports, by subject; every alert carries a link to its section here. HOST, NODE and the like
stand for what the alert names. *critical*: users are hit now; *warning*: they will be; *info*: worth knowing.

What begins with `ssh` runs on the host that the alert names, `deploy` where the site is, the rest on the
controller or the host of the service. `sudo` is part of what shows nothing, or less, without it.
deploy installs none of smartctl, ras-mc-ctl, sensors, ipmitool, ethtool, lspci and ibdiagnet.

Alerts carry the path of this page. Set `prometheus_external_labels: {runbooks: "https://wiki.example.org/"}`
to have them carry the address where your people read it. Made by `docs/generate.py` from deploy/monitoring.
"""


def runbooks() -> str:
    """The text of the page."""
    return "\n".join([_INTRODUCTION, *_parts()])


def _parts() -> Iterator[str]:
    for chapter in CHAPTERS:
        yield f"## {chapter.title}\n"
        yield from map(_section, chapter.alerts)


def _section(alert: Alert) -> str:
    """A heading is an anchor of its own: alerts.md#hostdown."""
    when = f"for {alert.minutes} minutes" if alert.minutes else "at once"
    commands = "\n".join(alert.commands)
    taken = "A node for which it fires is taken by `deploy node repair`.\n\n" if alert.repair else ""
    return (
        f"### {alert.name}\n\n*{alert.severity}*. {alert.means}\n\n*What to look at*: {alert.look}\n\n"
        f"```console\n{commands}\n```\n\n{taken}Fires {when} while:\n\n```text\n{alert.expr}\n```\n"
    )
