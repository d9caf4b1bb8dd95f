"""Slurm's versions on different hosts: which may work together."""

import re
from collections.abc import Iterable, Iterator, Mapping

from deploy.errors import DeployError, ExitCode, Finding
from deploy.run.events import Event, HostResult

Release = tuple[int, int]

RELEASES: tuple[Release, ...] = (
    (19, 5),
    (20, 2),
    (20, 11),
    (21, 8),
    (22, 5),
    (23, 2),
    (23, 11),
    (24, 5),
    (24, 11),
    (25, 5),
    (25, 11),
    (26, 5),
)
"""Slurm's major releases in order."""
_THREE_SINCE: Release = (24, 11)
"""From here on a controller understands three previous releases, before it two.

That holds of the RPCs of nodes and commands, of the state that a controller kept, and of the database
(Slurm's upgrade guide, https://slurm.schedmd.com/upgrades.html, "Compatibility Window").
"""


def release(version: str) -> Release | None:
    """``24.11.5-4`` -> (24, 11); None when it is no version."""
    found = re.match(r"(?:\d+:)?(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else None


def understands(controller: Release, node: Release) -> bool:
    """Whether a controller of one release may have nodes of another; what is newer than the table may."""
    if node > controller:
        return False
    if controller not in RELEASES or node not in RELEASES:
        return node == controller or controller not in RELEASES
    back = 3 if controller >= _THREE_SINCE else 2
    return RELEASES.index(controller) - RELEASES.index(node) <= back


def versions(events: Iterable[Event]) -> dict[str, str]:
    """Host -> the version of Slurm that it has or would get, where a check or the controller said so."""
    found: dict[str, str] = {}
    for event in events:
        if isinstance(event, HostResult) and event.answer:
            said = event.answer.get("slurm_version") or (event.answer.get("slurm") or {}).get("version")
            if isinstance(said, str) and said:
                found[event.host] = said
    return found


def version_skew(
    events: Iterable[Event], controllers: Iterable[str], accounting: Iterable[str]
) -> tuple[Finding, ...]:
    """Hosts that the controller would not understand, as far as a run's events tell."""
    return tuple(skew(versions(events), controllers, accounting))


def refuse_skew(events: Iterable[Event], controllers: Iterable[str], accounting: Iterable[str]) -> None:
    """Raises DeployError ``slurm-version-skew``, as far as a run's events tell."""
    found = version_skew(events, controllers, accounting)
    if found:
        raise DeployError(*found, exit_code=ExitCode.FAILED)


def skew(
    found: Mapping[str, str], controllers: Iterable[str], accounting: Iterable[str]
) -> Iterator[Finding]:
    """The same, from the versions by host; ``accounting`` are the hosts of slurmdbd."""
    first = next((name for name in controllers if name in found), "")
    master = release(found.get(first, ""))
    apart = {**_apart(found, "slurmdbd", accounting), **_apart(found, "slurmctld", controllers)}
    for host, other in sorted(found.items()):
        own = release(other)
        if host in apart:
            yield apart[host]
        elif host == first or master is None or own is None:
            continue
        elif not understands(master, own):
            how = "newer than" if own > master else "too old for"
            yield Finding(
                host,
                "slurm-version-skew",
                f"its Slurm {shown(own)} is {how} the controller {first} with {shown(master)}",
                f"give {host} the release of {first}'s distribution, or leave it out: --limit '!{host}'; "
                "where an upgrade was cut off, deploy upgrade goes on with it",
            )


def _apart(found: Mapping[str, str], daemon: str, hosts: Iterable[str]) -> dict[str, Finding]:
    """Of the hosts of a daemon those that stand by with another release than the first one's."""
    first, *others = [name for name in hosts if release(found.get(name, ""))] or [""]
    return {
        host: Finding(
            host,
            "slurm-version-skew",
            f"its {daemon} {shown(own)} could not take over from {first} with {shown(lead)}, nor the other "
            "way round",
            "give both one release; where an upgrade was cut off, deploy upgrade goes on with it",
        )
        for host in others
        if (own := release(found[host])) != (lead := release(found[first])) and own and lead
    }


def shown(of: Release) -> str:
    """As Slurm writes it: (24, 5) -> ``24.05``."""
    return f"{of[0]}.{of[1]:02d}"
