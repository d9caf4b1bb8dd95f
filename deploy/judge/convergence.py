"""When each host was last made what its site says, and by which version: the journal's answer."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from deploy.judge.drift import HostState
from deploy.judge.summary import Summary
from deploy.run.journal import RecordedRun


@dataclass(frozen=True)
class Convergence:
    """The end of the run that converged a host; ``at`` is seconds since the epoch.

    Without a ``run`` the host's own records say so: the journal keeps the last runs of one copy of the site.
    """

    at: float
    version: str
    run: str


def last_convergences(runs: Iterable[RecordedRun]) -> dict[str, Convergence]:
    """By host, from runs in the order they were made; hosts that never converged are not there."""
    found: dict[str, Convergence] = {}
    for run in runs:
        if not run.is_complete:
            continue
        end = Convergence(float(run.metadata["ended"]), str(run.metadata.get("version", "")), run.id)
        found |= dict.fromkeys(run.converged, end)
    return found


def recorded_convergence(state: HostState | None) -> Convergence | None:
    """What a host's own records say, where they are of all that it takes part in."""
    return Convergence(state.at, state.version, "") if state and state.is_whole else None


def converged_hosts(summary: Summary, limit: Collection[str] | None) -> list[str]:
    """The hosts on which every task of the whole cluster succeeded, in a run of whole phases."""
    return [name for name, host in summary.hosts.items() if host.is_good and (limit is None or name in limit)]
