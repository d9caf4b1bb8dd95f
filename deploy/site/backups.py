"""Backups: who can read them."""

from collections.abc import Iterator

from deploy.errors import Finding
from deploy.site.inventory import Site


def check_backups(site: Site) -> Iterator[Finding]:
    """A timer that makes backups that nobody could be given the key of."""
    for host in site.controllers:
        if host.value("backup_schedule") and not host.value("backup_recipients"):
            yield without_recipients(host.where("backup_schedule"))


def without_recipients(where: str) -> Finding:
    """The finding ``backup-without-recipients``."""
    return Finding(
        where,
        "backup-without-recipients",
        "backup_recipients is empty: nobody could be given what decrypts a backup",
        "make a key where no server is: age-keygen -o backup.key; then in group_vars/all.yml: "
        "backup_recipients: [age1…] with the public key that it printed; an ssh public key will do, too",
    )
