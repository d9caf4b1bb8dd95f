"""What waits on hosts, as text and for programs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from deploy.engine.update import Package, Pending, Updated
from deploy.site.node_lists import fold

_SHOWN = 12


def pending_lines(waiting: Sequence[Pending]) -> Iterator[str]:
    """What waits, hosts with the same together."""
    alike: dict[tuple[Any, ...], list[str]] = {}
    for it in waiting:
        key = (it.packages, it.held, it.units, it.reboot, it.unfinished, it.is_halted, it.trouble)
        alike.setdefault(key, []).append(it.host)
    for (packages, held, units, reboot, unfinished, is_halted, trouble), hosts in alike.items():
        if trouble:
            yield f"{fold(hosts)}: left out, it cannot say what waits: {trouble}"
            continue
        security = sum(package.security for package in packages)
        said = f"{len(packages)} update{'s' * (len(packages) != 1)}" if packages else "up to date"
        yield f"{fold(hosts)}: {said}{f', {security} for security' if security else ''}"
        yield from _packages("", packages)
        if is_halted:
            yield "  drained by an update that did not come to its end; it goes on there"
        if unfinished:
            yield "  an installation was cut off, and is finished first"
        yield from _packages("stays as it is: ", held)
        if units:
            yield f"  runs what was replaced, and is restarted: {', '.join(units)}"
        yield from (f"  needs a reboot: {why}" for why in reboot)


def updated_lines(came: Updated, reboot: str) -> Iterator[str]:
    """What an update came to; ``reboot`` says how hosts that are no compute nodes come to their reboot."""
    yield f"updated: {fold(came.hosts)}"
    for host, why in came.reboot.items():
        yield f"{host}: needs a reboot, {'; '.join(why)}: {reboot}"


def as_json(waiting: Sequence[Pending]) -> list[Mapping[str, Any]]:
    """The same for programs."""
    return [asdict(it) for it in waiting]


def _packages(what: str, packages: Sequence[Package]) -> Iterator[str]:
    for package in packages[:_SHOWN]:
        security = " (security)" if package.security else ""
        yield f"  {what}{package.name} {package.old or '(new)'} -> {package.new}{security}"
    if len(packages) > _SHOWN:
        yield f"  {what}and {len(packages) - _SHOWN} more (--json names all)"
