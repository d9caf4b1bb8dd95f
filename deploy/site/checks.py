"""What is wrong with a site, found offline: before the first connection, all of it at once."""

from collections.abc import Callable, Iterable
from pathlib import Path

from deploy.errors import DeployError, Finding, Severity
from deploy.site.access import check_access
from deploy.site.accounting import check_accounting, check_users
from deploy.site.backups import check_backups
from deploy.site.containers import check_containers
from deploy.site.deepops import check_deepops_groups
from deploy.site.directory import check_directory
from deploy.site.duplicates import check_duplicates
from deploy.site.energy import check_energy
from deploy.site.hardware_check import check_hardware
from deploy.site.inventory import Site
from deploy.site.job_programs import check_job_programs
from deploy.site.membership import check_addresses, check_groups, check_names
from deploy.site.monitoring import check_monitoring
from deploy.site.other_numbers import check_other_numbers
from deploy.site.partitions import check_partitions
from deploy.site.portal import check_portal
from deploy.site.power_saving import check_power_saving
from deploy.site.preemption import check_preemption
from deploy.site.programs import check_programs
from deploy.site.registry import check_registry
from deploy.site.reservations import check_reservations
from deploy.site.rest import check_rest
from deploy.site.secrets_check import check_secrets
from deploy.site.slurm_parameters import check_slurm_parameters
from deploy.site.slurm_releases import check_slurm_releases
from deploy.site.slurm_source import check_slurm_source
from deploy.site.software import check_software
from deploy.site.storage import check_storage
from deploy.site.templates_check import check_templates
from deploy.site.topology import check_topology
from deploy.site.variable_files import check_variable_files
from deploy.site.variables_check import check_variables

_CHECKS: tuple[Callable[[Site], Iterable[Finding]], ...] = (
    check_groups,
    check_names,
    check_addresses,
    check_deepops_groups,
    check_variable_files,
    check_variables,
    check_other_numbers,
    check_templates,
)
_OF_VALUES: tuple[Callable[[Site], Iterable[Finding]], ...] = (
    check_partitions,
    check_topology,
    check_reservations,
    check_slurm_parameters,
    check_slurm_source,
    check_slurm_releases,
    check_power_saving,
    check_preemption,
    check_energy,
    check_containers,
    check_accounting,
    check_users,
    check_hardware,
    check_storage,
    check_access,
    check_directory,
    check_duplicates,
    check_programs,
    check_software,
    check_job_programs,
    check_backups,
    check_portal,
    check_registry,
    check_rest,
    check_monitoring,
)
"""Those that ask what values mean, whatever templates they come from."""


def check_site(
    site: Site, vault_password_file: Path | None = None, *, reads_secrets: bool = True
) -> list[Finding]:
    """The site's warnings. Raises one DeployError with every finding when one of them is an error."""
    findings = site_findings(site, vault_password_file, reads_secrets=reads_secrets)
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise DeployError(*findings)
    return findings


def site_findings(
    site: Site, vault_password_file: Path | None = None, *, reads_secrets: bool = True
) -> list[Finding]:
    """Everything that is wrong with a site, and what may be, sorted by place."""
    found = {finding for check in _CHECKS for finding in check(site)}
    found |= {finding for check in _OF_VALUES for finding in check(site.resolved)}
    if reads_secrets:
        found |= set(check_secrets(site, vault_password_file))
    return sorted({*site.warnings, *found})
