"""Templates that never come to a value on the hosts that read them, and lookups that nobody can foresee."""

from collections.abc import Iterator

from deploy.errors import Finding, Severity
from deploy.site.inventory import Host, Site
from deploy.site.node_lists import fold
from deploy.site.origin import shown
from deploy.site.reading import Problem, Resolution
from deploy.site.schema import Option, options
from deploy.site.variables_check import readers


def check_templates(site: Site) -> Iterator[Finding]:
    """Each template once, whatever number of hosts share it."""
    names = sorted({name for host in site.cluster for name in host.resolutions})
    for name in names:
        sharing: dict[Resolution, list[Host]] = {}
        for host in site.cluster:
            if name in host.resolutions:
                sharing.setdefault(host.resolutions[name], []).append(host)
        yield from _of_variable(site, options()[name], sharing)


def _of_variable(site: Site, option: Option, sharing: dict[Resolution, list[Host]]) -> Iterator[Finding]:
    certain = readers(site, option.role)
    if certain is None:
        # Not those who have what a template lacks, or there would be none.
        certain = site.cluster if all(resolution.problems for resolution in sharing) else ()
    names = {host.name for host in certain}
    readers_with: dict[Problem, list[Host]] = {}
    for resolution, hosts in sharing.items():
        for problem in resolution.problems:
            readers_with.setdefault(problem, []).extend(host for host in hosts if host.name in names)
    for problem, reading in readers_with.items():
        if reading:
            yield _finding(option, problem, reading, is_partial=len(reading) < len(site.cluster))
    unforeseen = [h for r, hosts in sharing.items() if r.is_unforeseen for h in hosts]
    if unforeseen:
        yield Finding(
            unforeseen[0].where(option.name),
            "lookup-unforeseen",
            f"{option.name} looks something up that only the host can name, so what reads it runs every time",
            "look it up by what the inventory says, not by facts or by what a run computes",
            Severity.WARNING,
        )


def _finding(option: Option, problem: Problem, hosts: list[Host], *, is_partial: bool) -> Finding:
    whose = f" for {fold(host.name for host in hosts)}" if is_partial else ""
    where = shown(problem.where) if problem.where else hosts[0].where(option.name)
    if problem.undefined:
        return Finding(
            where,
            "undefined-variable",
            f"{option.name} cannot be resolved{whose}: {problem.text}",
            "set it where those hosts read it, as in group_vars/all.yml; or write NAME | default(VALUE)",
        )
    why = "the reason is not shown: it is secret" if option.secret else problem.text
    return Finding(
        where,
        "unresolvable-value",
        f"{option.name} cannot be resolved{whose}: {why}",
        "fix the template, or write the value itself",
    )
