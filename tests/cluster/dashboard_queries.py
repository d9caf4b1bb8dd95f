"""Asks a live Prometheus what every panel of every dashboard would ask, and what of it has no answer.

``python -m tests.cluster.dashboard_queries http://ADDRESS:9090`` lists the panels without data.
"""

import json
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deploy.monitoring.alerts import CHAPTERS
from deploy.monitoring.dashboards import DASHBOARDS
from deploy.monitoring.panel import Dashboard
from deploy.monitoring.queries import filled

_OPEN = urllib.request.build_opener(urllib.request.ProxyHandler({})).open

Ask = Callable[[str], list[Any]]
"""A query to its result's series; raises when Prometheus rejects the query."""


@dataclass(frozen=True)
class Unanswered:
    """A panel's query that has no data."""

    dashboard: str
    panel: str
    expr: str
    needs: str
    """What a cluster must have for this panel; empty when every cluster has it, so that this is a fault."""


def data(url: str, path: str, **parameters: object) -> Any:  # noqa: ANN401 - whatever Prometheus answers
    """What the Prometheus at that address answers; ValueError when it rejects the question."""
    question = urllib.parse.urlencode(parameters)
    try:
        with _OPEN(f"{url}/api/v1/{path}?{question}", timeout=30) as said:
            return json.load(said)["data"]
    except urllib.error.HTTPError as problem:
        message = f"{question}: {problem.read().decode()}"
        raise ValueError(message) from problem


def ask(url: str) -> Ask:
    """Asks the Prometheus at that address."""

    def answer(expr: str) -> list[Any]:
        result: list[Any] = data(url, "query", query=expr)["result"]
        return result

    return answer


def unanswered(ask: Ask) -> list[Unanswered]:
    """The queries without data. A query that Prometheus rejects raises ValueError."""
    job = running_job(ask)
    return [found for found in _all(job) if not ask(found.expr)]


def running_job(ask: Ask) -> str:
    """A job that runs, if one does; rather one with GPUs."""
    largest = ask("topk(1, slurm_job_gpus * 1000000 + slurm_job_cpus)")
    return next((one["metric"]["job_id"] for one in largest), "0")


def as_asked(dashboard: Dashboard, expr: str, job: str) -> str:
    """The query with everything chosen that can be chosen, and that job."""
    single = {variable.name for variable in dashboard.variables if not variable.several}
    several = {variable.name for variable in dashboard.variables if variable.several}
    return filled(filled(expr, several), single, job)


def _all(job: str) -> Iterator[Unanswered]:
    for dashboard in DASHBOARDS:
        for panel in dashboard.panels:
            for query in panel.queries:
                yield Unanswered(
                    dashboard.uid, panel.title, as_asked(dashboard, query.expr, job), panel.needs
                )


def broken_rules(url: str) -> Mapping[str, str]:
    """The rules of that Prometheus that fail, with why, and those of ours that it does not have."""
    groups = data(url, "rules")["groups"]
    rules = {rule["name"]: rule for group in groups for rule in group["rules"]}
    missing = {alert.name for chapter in CHAPTERS for alert in chapter.alerts} - rules.keys()
    failed = {name: rule["lastError"] for name, rule in rules.items() if rule.get("lastError")}
    return {**dict.fromkeys(missing, "not there"), **failed}


def main(url: str) -> int:
    """Prints what has no data; 1 when it should have."""
    silent = unanswered(ask(url))
    for one in silent:
        reason = f"needs {one.needs}" if one.needs else "NO DATA"
        sys.stdout.write(f"{reason:<40} {one.dashboard}: {one.panel}: {one.expr}\n")
    broken = broken_rules(url)
    for name, why in broken.items():
        sys.stdout.write(f"RULE {name}: {why}\n")
    return 1 if broken or any(not one.needs for one in silent) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
