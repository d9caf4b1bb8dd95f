"""What a run would do, as ``deploy plan`` shows it."""

from typing import Any

from deploy.judge.foretold import Foretold
from deploy.show.forecast import as_json, change_lines, drift_lines, failure_texts, loss_lines, verdict
from deploy.show.summary import summary_json
from deploy.show.text import unfinished_lines


def foretold_json(foretold: Foretold) -> dict[str, Any]:
    """For programs: the forecast, and how far it is known."""
    came_to = summary_json(foretold.summary)
    more = ("outcome", "trouble", "not_run", "left_over")
    return as_json(foretold.forecast) | {name: came_to[name] for name in more}


def foretold_lines(foretold: Foretold) -> list[str]:
    """Everything that differs, would change, or could not be foretold; the last line says it in one."""
    forecast, summary = foretold.forecast, foretold.summary
    parts = (
        drift_lines(forecast),
        change_lines(forecast),
        failure_texts(forecast),
        list(summary.trouble),
        unfinished_lines(summary),
        loss_lines(forecast),
    )
    lines = [line for part in parts if part for line in (*part, "")]
    return [*lines, "plan: not known, because Ansible broke" if summary.trouble else verdict(forecast)]
