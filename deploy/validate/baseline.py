"""The measurements of the last good validation, and what became worse since."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from deploy.durable import replace_file
from deploy.validate.result import Judged, Outcome, Result
from deploy.validate.thresholds import Thresholds

Measurements = Mapping[str, Mapping[str, float]]
"""Values by check and host."""

_FILE = "validation.json"
COMPARED = frozenset({"speed", "nccl-bandwidth", "nvbandwidth", "burn-in"})
"""How long a job takes to start depends on who else is there; how long a piece of work takes does not."""
_PERCENT = 100
_LEAST = 1e-9


def read_baseline(state: Path) -> Measurements:
    """What was kept in the directory ``.deploy``; nothing when there is none, or it cannot be read."""
    try:
        kept = json.loads((state / _FILE).read_text(encoding="utf-8"))
        return {str(check): {str(h): float(v) for h, v in values.items()} for check, values in kept.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def keep_baseline(state: Path, checks: Iterable[Judged]) -> None:
    """Keeps the measurements of a validation in which nothing failed; what it left out stays as it was."""
    kept = {check: dict(values) for check, values in read_baseline(state).items()}
    for check in checks:
        values = {v.where: v.value for v in check.results if v.value is not None}
        if check.check in COMPARED and values:
            kept[check.check] = {**kept.get(check.check, {}), **values}
    replace_file(state / _FILE, json.dumps(kept, indent=1))


def with_regressions(
    checks: Iterable[Judged], baseline: Measurements, thresholds: Thresholds
) -> tuple[Judged, ...]:
    """The checks, in which a measurement much worse than in the baseline failed."""
    worst = 1 + thresholds.regression_percent / _PERCENT

    def judged(check: str, result: Result) -> Result:
        before = baseline.get(check, {}).get(result.where)
        if result.outcome is not Outcome.PASSED or result.value is None or not before:
            return result
        slower = before / max(result.value, _LEAST) if result.is_rate else result.value / before
        if slower <= worst:
            return result
        percent = _PERCENT * (slower - 1)
        message = f"{result.message}: {percent:.0f} % slower than in the last good validation"
        hint = f"what changed since? If it is meant to be so, remove .deploy/{_FILE}"
        return replace(result, outcome=Outcome.FAILED, message=message, hint=hint)

    return tuple(
        replace(check, results=tuple(judged(check.check, result) for result in check.results))
        for check in checks
    )
