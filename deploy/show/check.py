"""The result of a check: lines for people, data for programs."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from deploy.errors import Finding, Severity
from deploy.judge.site_check import SiteCheck, Verdict, folded
from deploy.site.node_lists import fold


def lines(check: SiteCheck) -> Iterator[str]:
    """What is wrong, errors first, hosts with the same folded together; then what is right, and a verdict."""
    for finding, places in folded(check.findings):
        yield from str(replace(finding, where=fold(places))).splitlines()
    yield from [""] * bool(check.findings)
    well: dict[tuple[str, ...], list[str]] = {}
    for host in check.hosts:
        if host.checked and not host.findings:
            well.setdefault(host.checked, []).append(host.name)
    for subjects, names in well.items():
        yield f"{fold(names)}: checked: {', '.join(subjects)}"
    yield verdict(check)


def verdict(check: SiteCheck) -> str:
    """The whole site in one line."""
    total = len(check.hosts)
    counts = {verdict: sum(host.verdict is verdict for host in check.hosts) for verdict in Verdict}
    kinds = [finding.severity for finding in check.findings]
    errors, warnings = kinds.count(Severity.ERROR), kinds.count(Severity.WARNING)
    wrong = [f"{counts[kind]} {kind}" for kind in (Verdict.UNFIT, Verdict.UNREACHABLE) if counts[kind]]
    states = ", ".join([*wrong, f"{counts[Verdict.FIT]} fit"])
    said = f"{errors} error{'s' * (errors != 1)}, {warnings} warning{'s' * (warnings != 1)}"
    return f"{total} host{'s' * (total != 1)}: {states} ({said}); nothing was changed"


def as_json(check: SiteCheck) -> dict[str, Any]:
    """The result for programs."""
    return {
        "exit_code": int(check.exit_code),
        "findings": [_as_json(finding) for finding in check.findings],
        "hosts": {
            host.name: {"verdict": host.verdict.value, "checked": list(host.checked)} for host in check.hosts
        },
    }


def _as_json(finding: Finding) -> dict[str, str]:
    return {name: str(value) for name, value in asdict(finding).items()}
