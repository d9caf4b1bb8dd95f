"""What a site that comes from DeepOps is told."""

from tests.unit.site.bad.site import BadSite, variables

SITES = (
    variables(
        "high availability",
        "slurm_enable_ha: true\n",
        (
            "group_vars/all.yml:1: slurm_enable_ha is a variable of DeepOps; slurm_enable_ha is now "
            "the number of hosts in [slurm-master] [deepops-renamed]"
        ),
    ),
    variables(
        "the cluster's name",
        "slurm_cluster_name: deepops\n",
        (
            "group_vars/all.yml:1: slurm_cluster_name is a variable of DeepOps; slurm_cluster_name "
            "is now slurmctld_cluster_name [deepops-renamed]"
        ),
    ),
    variables(
        "a time limit",
        'slurm_max_job_timelimit: "1-00:00:00"\n',
        (
            "group_vars/all.yml:1: slurm_max_job_timelimit is a variable of DeepOps; "
            "slurm_max_job_timelimit is now max_time of a partition [deepops-renamed]"
        ),
    ),
    variables(
        "what is turned off",
        "slurm_enable_ha: false\n",
        (
            "group_vars/all.yml:1: warning: slurm_enable_ha is a variable of DeepOps; "
            "slurm_enable_ha is now the number of hosts in [slurm-master] [deepops-renamed]"
        ),
    ),
    variables(
        "shared directories",
        "nfs_mounts: [{mountpoint: /home, server: login01, path: /home}]\n",
        (
            "group_vars/all.yml:1: nfs_mounts is a variable of DeepOps; nfs_mounts is now "
            "nfs_client_mounts, by default all that [slurm-nfs] exports [deepops-renamed]"
        ),
    ),
    variables(
        "who may log in on nodes",
        "slurm_restrict_node_access: false\n",
        (
            "group_vars/all.yml:1: slurm_restrict_node_access is a variable of DeepOps; "
            "slurm_restrict_node_access is now job_ssh_admits [deepops-renamed]"
        ),
    ),
    variables(
        "what nobody misses",
        "docker_install: true\n",
        (
            "group_vars/all.yml:1: warning: docker_install is a variable of DeepOps; no container "
            "runtime is set up for users [deepops-not-here]"
        ),
    ),
    BadSite(
        "a group without meaning",
        expected=(("inventory.ini: warning: [kube-node]: Kubernetes is not set up [deepops-group]"),),
        edits=(("[slurm-master]", "[kube-node]\nctl1\n\n[slurm-master]"),),
    ),
)
