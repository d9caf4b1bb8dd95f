"""What a run came to, as data for programs."""

from typing import Any

from deploy.judge.summary import Summary


def summary_json(summary: Summary) -> dict[str, Any]:
    """What a run came to, for programs."""
    return {
        "outcome": summary.outcome.value,
        "exit_code": int(summary.exit_code),
        "seconds": round(summary.seconds, 2),
        "hosts": {
            name: {
                "ok": host.ok,
                "changed": host.changed,
                "failed": host.failed,
                "unreachable": host.unreachable,
                "skipped": host.skipped,
                "rescued": host.rescued,
                "ignored": host.ignored,
                "verified": host.verified,
                "not_run": host.not_run,
                "pending": list(host.pending),
                "unknown": host.unknown,
                "seconds": round(host.seconds, 2),
            }
            for name, host in summary.hosts.items()
        },
        "failures": [
            {
                "host": failure.host,
                "play": failure.play,
                "role": failure.role,
                "task": failure.task,
                "path": failure.path,
                "status": failure.status.value,
                "message": failure.message,
            }
            for failure in summary.failures
        ],
        "not_run": [
            {"phase": part.phase, "title": part.title, "hosts": list(part.hosts), "why": part.why}
            for part in summary.not_run
        ],
        "slowest_tasks": [
            {"task": slow.task, "seconds": round(slow.seconds, 2), "host": slow.host}
            for slow in summary.slowest
        ],
        "trouble": list(summary.trouble),
        "warnings": list(summary.warnings),
        "left_over": {left.host: list(left.things) for left in summary.left_over},
    }
