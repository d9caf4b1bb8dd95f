"""What promtool compares the alerts with: numbers that make each fire, and numbers that do not."""

from collections.abc import Iterable, Mapping
from typing import Any

from deploy.monitoring.alert import Alert, Chapter, Series

_Test = dict[str, Any]


def test_file(chapter: Chapter, rule_files: Iterable[str]) -> Mapping[str, Any]:
    """The file for ``promtool test rules``; ``rule_files`` are paths."""
    return {
        "rule_files": list(rule_files),
        "evaluation_interval": "1m",
        "tests": [test for alert in chapter.alerts for test in (_fires(alert), _stays_silent(alert))],
    }


def _fires(alert: Alert) -> _Test:
    """One alert of this name, with these labels, and not before its time."""
    labels = ",".join(f'{name}="{value}"' for name, value in sorted(alert.expect.items()))
    by = f" by ({', '.join(sorted(alert.expect))})" if alert.expect else ""
    fired = {"labels": f"{{{labels}}}", "value": 1}
    return {
        "name": f"{alert.name} fires",
        "interval": "1m",
        "input_series": _input(alert.sick),
        "promql_expr_test": [
            _expects(f"count{by} ({_firing(alert)})", alert.after, [fired]),
            *([_expects(_firing(alert), 0, [])] if alert.minutes else []),
        ],
    }


def _stays_silent(alert: Alert) -> _Test:
    return {
        "name": f"{alert.name} stays silent",
        "interval": "1m",
        "input_series": _input(alert.well),
        "promql_expr_test": [_expects(_firing(alert), alert.after, [])],
    }


def _firing(alert: Alert) -> str:
    return f'ALERTS{{alertname="{alert.name}",alertstate="firing"}}'


def _input(series: Series) -> list[Mapping[str, str]]:
    return [{"series": name, "values": values} for name, values in series.items()]


def _expects(expr: str, minutes: int, samples: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    return {"expr": expr, "eval_time": f"{minutes}m", "exp_samples": samples}
