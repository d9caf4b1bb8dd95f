"""Containers that only some hosts offer, and downloads without a checksum."""

from tests.unit.site.bad.site import BadSite, variables
from tests.unit.site.sites import INVENTORY

SITES = (
    BadSite(
        "containers on some nodes",
        (
            (
                "inventory.ini:5: node2 not in [slurm-container]: jobs end with a search for their "
                "containers, which fails there and drains the node [containers-on-some-nodes]"
            ),
        ),
        inventory=f"{INVENTORY}\n[slurm-container]\nnode1\n",
    ),
    BadSite(
        "a variable of Enroot where no host with containers has it",
        (
            (
                "group_vars/slurm-login.yml:1: enroot_mount_home is read on the hosts of [slurm-container], "
                "and none of them has it: it is set for login1 [unread-variable]"
            ),
        ),
        files={"group_vars/slurm-login.yml": "enroot_mount_home: true\n"},
        inventory=f"{INVENTORY}\n[slurm-container:children]\nslurm-node\n",
    ),
    variables(
        "an archive without a checksum",
        "pyxis_source: {version: 1.0, url: https://mirror.site/pyxis.tar.gz}\n",
        "group_vars/all.yml:1: pyxis_source lacks the key 'sha256' [invalid-value]",
    ),
    variables(
        "a checksum that is none",
        "enroot_package_files: [{url: https://mirror.site/enroot.deb, sha256: latest}]\n",
        (
            "group_vars/all.yml:1: enroot_package_files[0].sha256 is 'latest', not a SHA-256 checksum: "
            "64 digits and small letters a to f, as sha256sum shows it [invalid-value]"
        ),
    ),
)
