"""How ReFrame knows the lab."""

site_configuration = {
    "systems": [
        {
            "name": "lab",
            "hostnames": ["login1"],
            "partitions": [
                {
                    "name": "batch",
                    "scheduler": "slurm",
                    "launcher": "srun",
                    "environs": ["plain"],
                    "max_jobs": 2,
                }
            ],
        }
    ],
    "environments": [{"name": "plain", "target_systems": ["lab"]}],
}
