"""Backups that nobody could read."""

from tests.unit.site.bad.site import MASTER, variables

SITES = (
    variables(
        "a timer of backups for nobody",
        "backup_schedule: daily\n",
        (
            "group_vars/slurm-master.yml:1: backup_recipients is empty: nobody could be given what decrypts "
            "a backup [backup-without-recipients]"
        ),
        file=MASTER,
    ),
    variables(
        "a recipient that is no public key",
        "backup_recipients: [age1nobody]\n",
        (
            "group_vars/all.yml:1: backup_recipients[0] is not a public key, as age-keygen prints it (age1…) "
            "or of ssh (ssh-ed25519 or ssh-rsa, on one line) [invalid-value]"
        ),
    ),
    variables(
        "fewer weeks than none",
        "backup_keep: {daily: 7, weekly: -1}\n",
        "group_vars/all.yml:1: backup_keep.weekly is -1, not a number from 0 on [invalid-value]",
    ),
)
