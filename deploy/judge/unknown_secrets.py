"""Hosts that have other secrets than their site: most likely it is a copy without its secrets.yml."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from deploy.errors import DeployError, Finding
from deploy.judge.findings import findings_of, with_findings
from deploy.run.events import Event
from deploy.site.node_lists import fold


def refuse_unknown_secrets(events: Iterable[Event]) -> None:
    """Raises DeployError ``unknown-secret``, with all hosts of each secret together."""
    hosts: defaultdict[Finding, list[str]] = defaultdict(list)
    for result in with_findings(events):
        for finding in findings_of(result):
            if finding.reference == "unknown-secret":
                hosts[replace(finding, where="")].append(finding.where)
    if hosts:
        raise DeployError(*(replace(finding, where=fold(names)) for finding, names in hosts.items()))
