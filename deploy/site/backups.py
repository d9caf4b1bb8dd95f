"""Backups: who can read them."""

from collections.abc import Iterator

from deploy.errors import DeployError, Finding
from deploy.site.inventory import Site
from deploy.site.origin import host_origin


def check_backups(site: Site) -> Iterator[Finding]:
    """A timer that makes backups that nobody could be given the key of."""
    for host in site.controllers:
        if host.value("backup_schedule") and not host.value("backup_recipients"):
            yield without_recipients(host.where("backup_schedule"))
    if site.controllers and site.controller.value("backup_schedule") and (found := apart(site)):
        yield found


def refuse_apart(site: Site) -> None:
    """Raises DeployError ``backup-apart``."""
    if found := apart(site):
        raise DeployError(found)


def apart(site: Site) -> Finding | None:
    """The finding ``backup-apart`` where no host has all that a backup keeps."""
    database = site.database_host
    if database == site.controller:
        return None
    return Finding(
        host_origin(site.inventory, database.name),
        "backup-apart",
        f"a backup keeps what is on one host, and the queue is on {site.controller.name}, the accounting "
        f"database on {database.name}",
        f"keep a dump of the database by yourself ({database.name}: mariadb-dump --single-transaction "
        f"{database.value('slurmdbd_database_name')}), and the state of slurmctld by its storage",
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
