"""What a run would do, as lines and for programs."""

from collections.abc import Iterable, Iterator
from typing import Any

from deploy.judge.preview import Change, Job, Loss, Preview
from deploy.plan.impact import Impact
from deploy.show.text import diff_lines, failure_lines, message_lines
from deploy.site.node_lists import fold

_SHOWN_JOBS = 20
_NODE = "nodename="


def verdict(preview: Preview) -> str:
    """The whole preview in one line."""
    new = f"{fold(preview.fresh)}: new; " if preview.fresh else ""
    if new and not preview.changes:
        return f"plan: {new}nothing to change elsewhere; {_jobs(preview)}"
    if not preview.changes:
        return "plan: not known" if preview.failures else "plan: nothing to change"
    hosts = {change.result.host for change in preview.changes}
    services = sorted({_disturbed(change) for change in preview.changes if change.impact > Impact.NONE})
    count = len(preview.changes)
    line = f"plan: {new}{count} change{'s' * (count != 1)} on {fold(hosts)}; "
    return line + (f"impact: {', '.join(services)}" if services else "impact: none") + "; " + _jobs(preview)


def _disturbed(change: Change) -> str:
    return f"{change.impact.words} {change.service}".strip()


def _jobs(preview: Preview) -> str:
    if preview.jobs is None:
        return "whether jobs run is unknown: Slurm does not answer"
    running = [job for job in preview.jobs if not job.is_pending]
    lost = {job.id for loss in preview.losses for job in loss.jobs}
    if not running and not lost:
        return "no job runs"
    kept = [job for job in running if job.id not in lost]
    words = [f"{_ids(kept)} not disturbed"] * bool(kept) + [f"{len(lost)} would be lost"] * bool(lost)
    return "jobs: " + ", ".join(words)


def drift_lines(preview: Preview) -> list[str]:
    """What differs on hosts from what was converged there."""
    return [f"drift    {host}: {text}" for host, texts in preview.drift.items() for text in texts]


def loss_lines(preview: Preview) -> list[str]:
    """What would be lost, and why."""
    return [line for loss in preview.losses for line in _loss(loss, is_known=preview.jobs is not None)]


def _loss(loss: Loss, *, is_known: bool) -> Iterator[str]:
    change = f"{loss.before} -> {loss.after}" if loss.after else f"{loss.before} is removed"
    yield f"LOSES JOBS  {loss.parameter}: {change}"
    yield f"    {loss.why}"
    yield "    jobs: " + (
        (_ids(loss.jobs) or "none there now") if is_known else "unknown, Slurm does not answer"
    )


def _ids(jobs: Iterable[Job]) -> str:
    ids = [f"{job.id} ({job.user})" for job in jobs]
    more = f" and {len(ids) - _SHOWN_JOBS} more" if len(ids) > _SHOWN_JOBS else ""
    return ", ".join(ids[:_SHOWN_JOBS]) + more


def change_lines(preview: Preview, *, is_disturbing_only: bool = False) -> list[str]:
    """Every change with its impact and its difference; hosts with the same change share its lines."""
    groups: dict[tuple[Any, ...], list[Change]] = {}
    for change in preview.changes:
        if is_disturbing_only and change.impact is Impact.NONE:
            continue
        result = change.result
        key = (result.path, result.title, change.impact, change.service, change.reasons, result.diff)
        groups.setdefault((*key, result.message), []).append(change)
    return [line for changes in groups.values() for line in _group(changes, short=is_disturbing_only)]


def _group(changes: list[Change], *, short: bool) -> Iterator[str]:
    first = changes[0]
    hosts = fold({change.result.host for change in changes})
    yield f"{_disturbed(first):<24} {hosts}: {first.result.title}"
    if first.reasons:
        yield f"    because of {', '.join(_reasons(first.reasons))}"
    jobs = {job.id: job for change in changes for job in change.jobs}
    if jobs:
        yield f"    jobs there: {_ids(jobs.values())}"
    if not short:
        yield from message_lines(first.result)
        yield from (f"    {line}" for line in diff_lines(first.result))


def _reasons(parameters: Iterable[str]) -> Iterator[str]:
    """The parameters that differ, the lines of nodes in one."""
    listed = [*parameters]
    nodes = [name.removeprefix(_NODE) for name in listed if name.startswith(_NODE)]
    yield from (name for name in listed if not name.startswith(_NODE))
    if nodes:
        yield _NODE + fold(nodes)


def plan_lines(preview: Preview) -> list[str]:
    """What is said before a run: what disturbs anything, what is lost, and the whole in a line."""
    disturbing = change_lines(preview, is_disturbing_only=True)
    return [*disturbing, *failure_texts(preview), *loss_lines(preview), verdict(preview)]


def failure_texts(preview: Preview) -> list[str]:
    """What could not be previewed."""
    return [line for failure in preview.failures for line in failure_lines(failure)]


def as_json(preview: Preview) -> dict[str, Any]:
    """For programs; ``jobs`` is null when a configured Slurm did not answer."""
    return {
        "new": sorted(preview.fresh),
        "drift": {host: list(texts) for host, texts in preview.drift.items()},
        "changes": [
            {
                "host": change.result.host,
                "role": change.result.role,
                "task": change.result.task,
                "impact": change.impact.words,
                "service": change.service,
                "reasons": list(change.reasons),
                "jobs": [job.id for job in change.jobs],
                "message": change.result.message,
                "diff": diff_lines(change.result),
            }
            for change in preview.changes
        ],
        "losses": [
            {
                "parameter": loss.parameter,
                "before": loss.before,
                "after": loss.after,
                "why": loss.why,
                "jobs": [job.id for job in loss.jobs],
            }
            for loss in preview.losses
        ],
        "jobs": None
        if preview.jobs is None
        else [
            {"id": job.id, "state": job.state, "user": job.user, "nodes": sorted(job.nodes)}
            for job in preview.jobs
        ],
        "not_previewed": [
            {"host": failure.host, "task": failure.task, "message": failure.message}
            for failure in preview.failures
        ],
    }
