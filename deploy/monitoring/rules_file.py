"""Prometheus's rule files, as their text."""

import textwrap
from collections.abc import Iterator

from deploy.monitoring.alert import Alert
from deploy.monitoring.alerts import CHAPTERS
from deploy.monitoring.recording import GROUPS, Recording

RUNBOOKS = "docs/alerts.md"
_HEAD = "---\n# Made by docs/generate.py from deploy/monitoring; change that.\ngroups:\n"
_RUNBOOK_URL = "{{ $externalLabels.runbooks }}" + RUNBOOKS
"""A site says with the external label ``runbooks`` where its people read it; otherwise it is a path."""
_WIDTH = 110


def rule_files() -> Iterator[tuple[str, str]]:
    """Names and texts."""
    groups = (_group(name, map(_recording, rules)) for name, rules in GROUPS.items())
    yield "recording.yml", _HEAD + "".join(groups)
    for chapter in CHAPTERS:
        yield f"{chapter.name}.yml", _HEAD + _group(chapter.name, map(_alert, chapter.alerts))


def _group(name: str, rules: Iterator[str]) -> str:
    return f"  - name: {name}\n    rules:\n{''.join(rules)}"


def _recording(rule: Recording) -> str:
    return f"      - record: {rule.record}\n{_folded('expr', rule.expr, 8)}"


def _alert(alert: Alert) -> str:
    annotations = {
        "summary": alert.summary,
        "description": alert.means,
        "runbook_url": f"{_RUNBOOK_URL}#{alert.name.lower()}",
    }
    lines = [
        f"      - alert: {alert.name}\n",
        _folded("expr", alert.expr, 8),
        f"        for: {alert.minutes}m\n" if alert.minutes else "",
        f"        labels:\n          severity: {alert.severity}\n",
        f"          repair: {alert.repair}\n" if alert.repair else "",
        "        annotations:\n",
        *(_folded(key, value, 10) for key, value in annotations.items()),
    ]
    return "".join(lines)


def _folded(key: str, value: str, indent: int) -> str:
    """A text of any length and content: YAML makes one line of it again."""
    lines = textwrap.wrap(value, _WIDTH - indent, break_long_words=False, break_on_hyphens=False)
    inner = "".join(f"{' ' * (indent + 2)}{line}\n" for line in lines)
    return f"{' ' * indent}{key}: >-\n{inner}"
