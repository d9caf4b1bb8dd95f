"""Prometheus's rules, Grafana's dashboards and the runbooks, from deploy/monitoring."""

from collections.abc import Iterator
from pathlib import Path

from deploy.monitoring.dashboards import DASHBOARDS
from deploy.monitoring.grafana import dashboard_text
from deploy.monitoring.rules_file import RUNBOOKS, rule_files
from deploy.monitoring.runbooks import runbooks


def outputs(root: Path) -> Iterator[tuple[Path, str]]:
    """The files of the roles prometheus and grafana, and the page of the runbooks."""
    for name, text in rule_files():
        yield root / "roles/prometheus/files/rules" / name, text
    for dashboard in DASHBOARDS:
        yield root / "roles/grafana/files/dashboards" / f"{dashboard.uid}.json", dashboard_text(dashboard)
    yield root / RUNBOOKS, runbooks()
