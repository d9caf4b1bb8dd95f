"""What a run would do, as ``deploy plan`` shows it."""

from typing import Any

from deploy.judge.plan_outcome import PlanOutcome
from deploy.show.preview import as_json, change_lines, drift_lines, failure_texts, loss_lines, verdict
from deploy.show.summary import summary_json
from deploy.show.text import unfinished_lines


def plan_json(previewed: PlanOutcome) -> dict[str, Any]:
    """For programs: the preview, and how far it is known."""
    came_to = summary_json(previewed.summary)
    more = ("outcome", "trouble", "not_run", "left_over")
    return as_json(previewed.preview) | {name: came_to[name] for name in more}


def plan_lines(previewed: PlanOutcome) -> list[str]:
    """Everything that differs, would change, or could not be previewed; the last line says it in one."""
    preview, summary = previewed.preview, previewed.summary
    parts = (
        drift_lines(preview),
        change_lines(preview),
        failure_texts(preview),
        list(summary.trouble),
        unfinished_lines(summary),
        loss_lines(preview),
    )
    lines = [line for part in parts if part for line in (*part, "")]
    return [*lines, "plan: not known, because Ansible broke" if summary.trouble else verdict(preview)]
