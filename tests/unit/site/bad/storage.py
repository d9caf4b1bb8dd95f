"""Shared file systems that contradict each other."""

from tests.unit.site.bad.site import ALL, BadSite, variables

_SERVER = (("[slurm-login]", "[slurm-nfs]\nctl1\n\n[slurm-login]"),)

SITES = (
    variables(
        "exports without a server",
        "nfs_server_exports: [{path: /srv}]\n",
        (
            "group_vars/all.yml:1: nfs_server_exports is set for ctl1, login1, node1 …, but no host below "
            "[slurm-nfs] has it: nothing would be exported [nfs-without-server]"
        ),
    ),
    BadSite(
        "an export for everybody",
        expected=(
            (
                "group_vars/all.yml:1: nfs_server_exports[0].clients[0] is '*', not an address, a network "
                "as in 10.0.0.0/16, or a host name; never everybody (*) [invalid-value]"
            ),
        ),
        edits=_SERVER,
        files={ALL: "nfs_server_exports: [{path: /home, clients: ['*']}]\n"},
    ),
    BadSite(
        "two exports for one place",
        expected=(
            (
                "group_vars/all.yml:1: /home would be mounted twice on login1, and only the last one could "
                "be seen [mounted-twice]"
            ),
        ),
        edits=_SERVER,
        files={ALL: "nfs_server_exports: [{path: /home}, {path: /srv/home, mount: /home}]\n"},
    ),
    variables(
        "two file systems at one place",
        (
            "network_mounts_filesystems: [{path: /data, type: glusterfs, servers: [g1], name: a}, "
            "{path: /data, type: beegfs, servers: [b1]}]\n"
        ),
        (
            "group_vars/all.yml:1: /data would be mounted twice on ctl1, and only the last one could be seen "
            "[mounted-twice]"
        ),
    ),
    variables(
        "a quota without a unit that exists",
        "quotas_filesystems: [{path: /home, each_user: {space: 5P}}]\n",
        (
            "group_vars/all.yml:1: quotas_filesystems[0].each_user.space is '5P', not a size, as in 500G "
            "(without a unit KiB), or 0 for no limit [invalid-value]"
        ),
    ),
)
