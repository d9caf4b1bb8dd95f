"""What a check of a site came to: every host, what was looked at there, and what is wrong."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from deploy.errors import ExitCode, Finding, Severity
from deploy.judge.findings import checked, findings_of
from deploy.judge.version_skew import version_skew
from deploy.run.events import HostResult, Status


class Verdict(StrEnum):
    """How a host stands; one with nothing but warnings is fit."""

    FIT = "fit"
    UNFIT = "unfit"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True)
class CheckedHost:
    """A host, how it stands, what is wrong with it, and what was looked at and is right."""

    name: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    checked: tuple[str, ...]


@dataclass(frozen=True)
class SiteCheck:
    """The hosts of a check, and what the inventory and its variables gave rise to before it."""

    hosts: tuple[CheckedHost, ...]
    site_findings: tuple[Finding, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that is wrong, errors first, then by place."""
        found = [*self.site_findings, *(finding for host in self.hosts for finding in host.findings)]
        return tuple(sorted(found, key=lambda finding: (finding.severity is not Severity.ERROR, finding)))

    @property
    def exit_code(self) -> ExitCode:
        """The site comes before the hosts, and what is wrong on a host before hosts that do not answer."""
        if any(finding.severity is Severity.ERROR for finding in self.site_findings):
            return ExitCode.BAD_INPUT
        verdicts = {host.verdict for host in self.hosts}
        if Verdict.UNFIT in verdicts:
            return ExitCode.FAILED
        return ExitCode.UNREACHABLE if Verdict.UNREACHABLE in verdicts else ExitCode.OK


def check_hosts(
    results: Mapping[str, HostResult],
    addresses: Mapping[str, str],
    controllers: Iterable[str] = (),
    accounting: Iterable[str] = (),
) -> tuple[CheckedHost, ...]:
    """The hosts with these addresses, judged by their results in playbooks/check.yml."""
    hosts = tuple(_checked_host(name, results.get(name), address) for name, address in addresses.items())
    found = version_skew(results.values(), controllers, accounting)
    skewed = {finding.where: finding for finding in found}
    return tuple(
        replace(host, verdict=Verdict.UNFIT, findings=(*host.findings, skewed[host.name]))
        if host.name in skewed
        else host
        for host in hosts
    )


def _checked_host(name: str, result: HostResult | None, address: str) -> CheckedHost:
    if result is None:
        return CheckedHost(name, Verdict.UNFIT, (_unexplained(name, "it gave no answer"),), ())
    findings = findings_of(result, address)
    if result.status is Status.UNREACHABLE:
        verdict = Verdict.UNREACHABLE
    elif result.is_trouble:
        findings = findings or (_unexplained(name, result.message),)
        verdict = Verdict.UNFIT
    else:
        verdict = Verdict.FIT
    return CheckedHost(name, verdict, findings, checked(result))


def _unexplained(name: str, message: str) -> Finding:
    return Finding(name, "check-failed", message, "fix this, or report it if it is a fault of deploy")


def folded(findings: Iterable[Finding]) -> Iterable[tuple[Finding, tuple[str, ...]]]:
    """The findings that are alike but for their place, each once with all its places, in their order."""
    places: dict[tuple[Severity, str, str, str], list[Finding]] = {}
    for finding in findings:
        alike = (finding.severity, finding.reference, finding.message, finding.hint)
        places.setdefault(alike, []).append(finding)
    return [(group[0], tuple(finding.where for finding in group)) for group in places.values()]
