"""What to type after a run."""

from deploy.engine.run import Run
from deploy.judge.summary import Outcome, Summary
from deploy.site.node_lists import all_but, fold


def next_command(run: Run, summary: Summary, *, is_refused: bool) -> str:
    """The next thing to type after ``deploy cluster``."""
    if is_refused:
        unfit = [name for name, host in summary.hosts.items() if host.failed]
        before = [run.options.limit] if run.options.limit else []
        without = run.again(",".join([*before, all_but(unfit)]))
        return f"{run.command('check')}   (when this is fixed; to go on without: {without})"
    again = run.again()
    match summary.outcome:
        case Outcome.CONVERGED:
            return again if run.options.check else run.command("report")
        case Outcome.UNREACHABLE:
            lost = [name for name, host in summary.hosts.items() if host.unreachable]
            return f"{run.again(fold(lost))}   (when they answer again)"
        case Outcome.FAILED | Outcome.INTERRUPTED:
            return f"{again}   (run it again; what happened: {run.command('report')})"
