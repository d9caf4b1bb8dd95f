"""Registries of images that are none, two, or half a one; and what runs before tasks with containers."""

from tests.unit.site.bad.site import BadSite, variables

_ON = (("[slurm-node]", "[slurm-registry]\nctl1\n\n[slurm-node]"),)

SITES = (
    variables(
        "settings of a registry that is nowhere",
        "slurm_registry_max_gb: 30\n",
        (
            "group_vars/all.yml:1: warning: slurm_registry_max_gb is set for ctl1, and the cluster has no "
            "registry of images [registry-off]"
        ),
    ),
    BadSite(
        "two registries",
        expected=(
            (
                "login1: the registry of images is one, and [slurm-registry] names 2 hosts "
                "[registry-on-several-hosts]"
            ),
        ),
        edits=(("[slurm-node]", "[slurm-registry]\nctl1\nlogin1\n\n[slurm-node]"),),
    ),
    BadSite(
        "a registry with half a certificate, and names that are there twice",
        expected=(
            (
                "group_vars/all.yml:1: docker.io is there twice in the registry of images "
                "[registry-name-twice]"
            ),
            (
                "group_vars/all.yml:2: slurm_registry_certificate is set for ctl1, and "
                "slurm_registry_certificate_key is not [registry-certificate-incomplete]"
            ),
        ),
        edits=_ON,
        files={
            "group_vars/all.yml": (
                "slurm_registry_upstreams: [{name: docker.io}, {name: docker.io}]\n"
                "slurm_registry_certificate: "
                '"-----BEGIN CERTIFICATE-----\\nMII=\\n-----END CERTIFICATE-----"\n'
            )
        },
    ),
    BadSite(
        "a program that Slurm runs in containers",
        expected=(
            (
                "group_vars/all.yml:1: TaskProlog is set beside containers: Slurm runs it in a task's "
                "container, where it is missing [task-prolog-in-containers]"
            ),
        ),
        edits=(
            (
                "[slurm-cluster:children]",
                "[slurm-container:children]\nslurm-node\n\n[slurm-cluster:children]",
            ),
        ),
        files={"group_vars/all.yml": "slurmctld_parameters: {TaskProlog: /software/prolog}\n"},
    ),
)
