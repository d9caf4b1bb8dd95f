"""Every bad site gets exactly its findings, all at once, and nothing of it changes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.errors import DeployError, ExitCode, Finding, Severity
from deploy.site.checks import check_site
from deploy.site.inventory import read_site
from tests.unit.site.bad import (
    access,
    accounting,
    backups,
    containers,
    deepops_sites,
    energy,
    hardware,
    inventories,
    job_programs,
    partitions,
    portal,
    power_saving,
    registry,
    reservations,
    rest,
    secrets,
    settings,
    slips,
    slurm_parameters,
    slurm_source,
    software,
    storage,
    templates,
    topology,
    variable_files,
    variable_values,
)
from tests.unit.site.bad.site import BadSite

SITES: tuple[BadSite, ...] = (
    *inventories.SITES,
    *job_programs.SITES,
    *variable_files.SITES,
    *variable_values.SITES,
    *deepops_sites.SITES,
    *partitions.SITES,
    *portal.SITES,
    *power_saving.SITES,
    *energy.SITES,
    *registry.SITES,
    *rest.SITES,
    *reservations.SITES,
    *topology.SITES,
    *slurm_parameters.SITES,
    *slurm_source.SITES,
    *containers.SITES,
    *accounting.SITES,
    *access.SITES,
    *backups.SITES,
    *hardware.SITES,
    *secrets.SITES,
    *settings.SITES,
    *slips.SITES,
    *software.SITES,
    *storage.SITES,
    *templates.SITES,
)
SECRET = "k3Y"  # noqa: S105 - what every secret of a bad site has in it
ROOT = Path(__file__).parents[3]


def state(directory: Path) -> dict[str, tuple[object, ...]]:
    """Everything that is in a directory, with what would show a change."""
    return {
        str(path.relative_to(directory)): (
            path.stat().st_mtime_ns,
            path.stat().st_mode,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in directory.rglob("*")
    }


def found(inventory: Path) -> tuple[Finding, ...]:
    """What reading and checking a site says."""
    try:
        return tuple(check_site(read_site(inventory)))
    except DeployError as problem:
        return problem.findings if problem.exit_code is ExitCode.BAD_INPUT else ()


@pytest.mark.usefixtures("quick_reading")
@pytest.mark.parametrize("site", SITES, ids=lambda site: site.title)
def test_findings(site: BadSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inventory = site.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = state(tmp_path)
    findings = found(inventory)
    assert tuple(str(finding).split("\n  -> ", 1)[0] for finding in findings) == site.expected
    assert all(finding.hint for finding in findings)
    assert SECRET not in "".join(map(str, findings))
    assert state(tmp_path) == before


def test_the_sites_are_many_and_distinct() -> None:
    assert len(SITES) >= 60
    assert len({site.title for site in SITES}) == len(SITES)


@pytest.mark.parametrize(
    "site",
    [inventories.SITES[0], variable_files.SITES[0], variable_values.SITES[0], secrets.SITES[0]],
    ids=lambda site: site.title,
)
def test_the_command_stops_with_exit_code_2(site: BadSite, tmp_path: Path) -> None:
    inventory = site.write(tmp_path)
    before = state(tmp_path)
    answer = subprocess.run(
        [sys.executable, "-m", "deploy", "cluster", inventory.name],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == ExitCode.BAD_INPUT
    assert answer.stdout == ""
    assert [line for line in answer.stderr.splitlines() if not line.startswith("  -> ")] == [
        f"deploy: {line}" if number == 0 else line for number, line in enumerate(site.expected)
    ]
    assert state(tmp_path) == before


@pytest.mark.usefixtures("quick_reading")
def test_a_warning_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for site in SITES:
        if all(": warning: " in line for line in site.expected):
            directory = tmp_path / site.title
            directory.mkdir()
            inventory = site.write(directory)
            monkeypatch.chdir(directory)
            warnings = check_site(read_site(inventory))
            assert {finding.severity for finding in warnings} == {Severity.WARNING}
