"""Backups: who can read them."""

from collections.abc import Iterator

from deploy.errors import Finding
from deploy.site.inventory import Site


def check_backups(site: Site) -> Iterator[Finding]:
    """A timer that makes backups that nobody could be given the key of."""
    for host in site.controllers:
        if host.value("backup_schedule") and not host.value("backup_recipients"):
            yield without_recipients(host.where("backup_schedule"))
    if site.controllers and site.controller.value("backup_schedule"):
        yield from _apart(site)


def _apart(site: Site) -> Iterator[Finding]:
    """The finding ``backup-apart`` where the host of the timer has not all that a backup keeps."""
    database = site.database_host
    if database != site.controller:
        yield Finding(
            site.controller.where("backup_schedule"),
            "backup-apart",
            f"a timer's backup keeps what is on one host, and the queue is on {site.controller.name}, the "
            f"accounting database on {database.name}",
            'backup_schedule: "", and a timer on the machine that has the site: deploy backup INVENTORY',
        )


def without_recipients(where: str) -> Finding:
    """The finding ``backup-without-recipients``."""
    return Finding(
        where,
        "backup-without-recipients",
        "backup_recipients is empty: nobody could be given what decrypts a backup",
        "make a key where no server is: age-keygen -o backup.key; then in group_vars/all.yml: "
        "backup_recipients: [age1…] with the public key that it printed; an ssh public key will do, too",
    )
