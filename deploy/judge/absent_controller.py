"""A controller that a cluster is to get and that is not there: the others would name it to everybody."""

from collections.abc import Collection, Iterable

from deploy.errors import DeployError, ExitCode, Finding
from deploy.judge.served import is_among, served
from deploy.run.events import Event
from deploy.site.inventory import Site


def refuse_absent_controller(
    events: Iterable[Event], site: Site, worked_on: Collection[str], limit: Collection[str] | None
) -> None:
    """Raises DeployError ``new-controller-absent``, as far as a run's events tell.

    ``worked_on`` are the controllers that the run configures. One that the cluster has already may be away,
    and so may any where there is no cluster yet. Where a ``limit`` leaves one out, it does not get what a
    controller needs besides slurmctld.
    """
    found = served(events)
    members = [name for name in worked_on if name in found and found[name]["cluster"]]
    absent = [
        host.name
        for host in site.controllers
        if (host.name not in found or (limit is not None and host.name not in limit))
        # One that left has what it was part of then.
        and (others := [name for name in members if name != host.name])
        and not any(is_among(host, found[name]) for name in others)
    ]
    if absent:
        raise DeployError(
            *(
                Finding(
                    name,
                    "new-controller-absent",
                    "nothing was changed: it is to be a controller of a cluster that does not have it yet, "
                    "and does not answer, or --limit leaves it out",
                    f"see to its address and its ssh, then all hosts without --limit; or take {name} out of "
                    "[slurm-master]",
                )
                for name in absent
            ),
            exit_code=ExitCode.UNREACHABLE,
        )
