"""What ``deploy replay`` does: asks which jobs there were, and a throwaway Slurm what it says of them."""

from collections.abc import Callable
from pathlib import Path

from deploy import run as programs
from deploy.engine.options import Options
from deploy.engine.run import Run, opened
from deploy.engine.secrets import borrowed_secrets
from deploy.errors import DeployError, ExitCode, error
from deploy.judge.replayed import Replayed, replayed
from deploy.plan.replay_group import write_replay
from deploy.run.cancellation import signals_cancel
from deploy.run.events import Event, HostResult, Status, TaskStarted
from deploy.run.execute import execute
from deploy.run.replay import AT_WORK
from deploy.site.hardware import read_contract

Say = Callable[[str], None]
"""Gets what is done next."""

_JOBS, _VERDICTS = "jobs", "verdicts"


def replay(inventory: Path, options: Options, days: int, progress: Say = lambda _: None) -> Replayed:
    """What the site's configuration would do to the jobs of so many days; changes nothing.

    Raises DeployError where it cannot be known.
    """
    with opened(inventory, options) as run:
        site = run.site
        if site.database_host != site.controller:
            raise error(
                "replay-apart",
                f"the accounting database is on {site.database_host.name}; a copy of its users and limits is "
                "made beside slurmctld, where there is no MariaDB",
                where=site.controller.name,
                hint=f"{run.command('plan')} says what would change; limits are tried by hand: "
                "sbatch --test-only",
            )
        if site.controller.value("slurm_auth_type") == "auth/slurm":
            raise error(
                "replay-without-munge",
                "jobs are tried on a throwaway Slurm, which signs by munge, and here Slurm signs itself "
                "(slurm_auth_type: auth/slurm)",
                where=site.controller.name,
                hint=f"{run.command('plan')} says what would change; limits are tried by hand: "
                "sbatch --test-only",
            )
        source = run.place / "replay.json"
        write_replay(source, site, read_contract(site), days, Path(programs.__path__[0]))
        results = _results(run, source, progress)
        answers = {result.step: result.answer for result in results if result.answer is not None}
        jobs = answers.get(_JOBS)
        if jobs and (why := jobs.get("trouble")):
            raise error(
                "replay-no-jobs",
                f"accounting does not say which jobs there were: {why}",
                where=site.controller.name,
                hint=run.command("status"),
                exit_code=ExitCode.FAILED,
            )
        _refuse_failures(run, results)
        verdicts = answers.get(_VERDICTS, {})
        if why := verdicts.get("trouble"):
            raise _untried(run, str(why))
        return replayed(days, jobs or {}, verdicts)


def _results(run: Run, source: Path, progress: Say) -> list[HostResult]:
    events: list[Event] = []

    def take(event: Event) -> None:
        events.append(event)
        if isinstance(event, TaskStarted):
            progress(event.task)

    with signals_cancel(run.cancellation):
        request = run.request("replay", source, borrowed_secrets(run))
        execute(request, take, run.cancellation, run.ansible)
    run.refuse_silence(events, [run.site.controller.name])
    return [event for event in events if isinstance(event, HostResult)]


def _refuse_failures(run: Run, results: list[HostResult]) -> None:
    for result in results:
        if result.is_trouble:
            is_away = result.status is Status.UNREACHABLE
            raise error(
                "host-silent" if is_away else "replay-failed",
                f"{result.title}: {result.message}",
                where=result.host,
                hint=run.command("check" if is_away else "plan"),
                exit_code=ExitCode.UNREACHABLE if is_away else ExitCode.FAILED,
            )


def _untried(run: Run, why: str) -> DeployError:
    controller = run.site.controller.name
    if why == AT_WORK:
        return error(
            "replay-at-work",
            "another replay is at work there; one at a time is enough for a controller",
            where=controller,
            hint="wait until it has ended, and type the command again",
            exit_code=ExitCode.FAILED,
        )
    return error(
        "replay-failed",
        f"the jobs could not be tried, and nothing was changed: {why}",
        where=controller,
        hint=run.command("plan"),
        exit_code=ExitCode.FAILED,
    )
