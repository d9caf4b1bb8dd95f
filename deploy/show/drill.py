"""The report of a drill, as text that an auditor can take."""

from collections.abc import Iterator, Mapping
from typing import Any

from deploy.judge.age import age
from deploy.show.backups import moment
from deploy.show.text import duration
from deploy.site.node_lists import fold

Report = Mapping[str, Any]
_WIDTH = 50


def drill_lines(report: Report) -> Iterator[str]:
    """The whole report."""
    yield f"Restore drill of the cluster {report['cluster']}: {report['outcome']}"
    yield f"{moment(report['at'])}, deploy {report['deploy']}, by {report['by']}"
    if report["problem"]:
        yield ""
        yield from report["problem"].splitlines()
    yield from _backup(report["backup"])
    yield from _lab(report["lab"])
    if report["compared"]:
        yield from _compared(report["compared"])
    if report["validation"]:
        yield from _validation(report["validation"])
    yield from ("", "What it took")
    for step in report["steps"]:
        yield f"  {step['step']:<{_WIDTH}} {duration(step['seconds'])}"
    yield from ("", "Not tried")
    for line in report["not_tried"]:
        yield f"  - {line}"


def _backup(backup: Report) -> Iterator[str]:
    yield from ("", "Backup")
    yield f"  file      {backup['file']}, {backup['bytes']} bytes"
    yield f"  SHA-256   {backup['sha256']}"
    before = age(backup["age_seconds"])
    yield f"  made      {moment(backup['made_at'])}, {before} before, by {backup['made_by']}"
    versions = (("deploy", backup["deploy"]), ("", backup["slurm"]), ("MariaDB", backup["mariadb"]))
    yield f"  versions  {', '.join(f'{name} {version}'.strip() for name, version in versions if version)}"
    yield f"  checked   {backup['verified_parts']} parts, each by the SHA-256 of the manifest"


def _lab(lab: Report) -> Iterator[str]:
    yield from ("", "Where")
    yield f"  local containers ({lab['release']}): {fold(lab['machines'])}"
    if apart := lab["apart"]:
        yield (
            f"  before anything was restored, {apart['machines']} machines lost their routes to elsewhere; "
            f"addresses of the cluster that were tried, and have none: {apart['addresses_of_the_site']}"
        )
    if lab["resumed"]:
        yield f"  out of service by the backup, put back into service in the lab: {fold(lab['resumed'])}"


def _compared(rows: list[Report]) -> Iterator[str]:
    yield from ("", f"{'Compared':<{_WIDTH + 2}} {'backup':>10} {'restored':>10}")
    for row in rows:
        figures = f"{row['backup'] or '-':>10} {row['found'] or '-':>10}"
        yield f"  {row['what']:<{_WIDTH}} {figures}  {row['verdict']}"
        if row["note"]:
            yield f"    {row['note']}"


def _validation(found: Report) -> Iterator[str]:
    by: dict[str, list[Report]] = {}
    for check in found["checks"]:
        by.setdefault(check["outcome"], []).append(check)
    yield from ("", "Validated (deploy validate --quick)")
    yield f"  {', '.join(f'{len(checks)} {outcome}' for outcome, checks in sorted(by.items()))}"
    for check in by.get("failed", ()):
        for result in check["verdicts"]:
            if result["outcome"] == "failed":
                yield f"  failed  {check['check']} {result['where']}: {result['message']}"
