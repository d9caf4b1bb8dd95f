"""Slurm by SchedMD's own packaging, and what the site does not say of it."""

from tests.unit.site.bad.site import ALL, BadSite, variables

_BUILT = (
    "slurm_packages_source: schedmd\nslurm_packages_version: '26.05'\n"
    f"slurm_packages_tarball: {{url: https://mirror.site/slurm.tar.bz2, sha256: {'a' * 64}}}\n"
)

SITES = (
    variables(
        "a Slurm that cannot do without munge",
        "slurm_auth_type: auth/slurm\nslurm_packages_version: '22.05'\n",
        (
            "group_vars/all.yml:1: slurm_auth_type: auth/slurm takes Slurm 24.05 or later, and "
            "slurm_packages_version is 22.05: it knows no several keys at once, of which a new one is made "
            "[slurm-too-old]"
        ),
    ),
    BadSite(
        "a Slurm that would give every job all GPUs, and start on no node",
        (
            (
                "group_vars/slurm-node.yml:1: scratch_private_directories takes Slurm 23.02 or later, and "
                "slurm_packages_version is 22.05: slurmd does not start by it, on any node [slurm-too-old]"
            ),
            (
                "group_vars/all.yml:2: slurmctld_gres_autodetect: nvidia takes Slurm 24.11 or later, and "
                "slurm_packages_version is 22.05: its slurmd finds no GPUs by it, keeps the count, and lets "
                "every job open all of them [slurm-too-old]"
            ),
        )[::-1],
        files={
            ALL: "slurm_packages_version: '22.05'\nslurmctld_gres_autodetect: nvidia\n",
            "group_vars/slurm-node.yml": "scratch_private_directories: [/tmp]\n",
        },
    ),
    variables(
        "a Slurm that knows nothing of what is asked, with the distribution's own last words",
        "slurm_packages_version: 21.08.8\nslurmctld_mpi_default: pmix_v4\nopenmpi_packages: [openmpi-bin]\n"
        "slurmd_gpu_shards: 2\nslurmctld_gres_autodetect: nvml\n",
        (
            "group_vars/all.yml:2: slurmctld_mpi_default: pmix takes Slurm 22.05 or later, and "
            "slurm_packages_version is 21.08.8: its packages have no PMIx, and every srun would fail "
            "[slurm-too-old]"
        ),
        (
            "group_vars/all.yml:3: openmpi_packages takes Slurm 22.05 or later, and slurm_packages_version "
            "is 21.08.8: its packages have no PMIx, by which srun starts programs of Open MPI [slurm-too-old]"
        ),
        (
            "group_vars/all.yml:4: slurmd_gpu_shards takes Slurm 22.05 or later, and slurm_packages_version "
            "is 21.08.8: it counts shares and gives their jobs no GPU [slurm-too-old]"
        ),
        (
            "group_vars/all.yml:5: slurmctld_gres_autodetect: nvml, or mig_layout takes Slurm 23.02 or "
            "later, and slurm_packages_version is 21.08.8: its packages have no plugin for it that fits "
            "[slurm-too-old]"
        ),
    ),
    variables(
        "authentication by nothing",
        "slurm_auth_type: none\n",
        (
            "group_vars/all.yml:1: slurm_auth_type is 'none', not one of auth/munge, auth/slurm "
            "[invalid-value]"
        ),
    ),
    BadSite(
        "hosts that know each other by different means",
        expected=(
            (
                "host_vars/node2.yml:1: slurm_auth_type must be the same on every host, and node1 has "
                "another one than node2 [differing-values]"
            ),
        ),
        files={"host_vars/node2.yml": "slurm_auth_type: auth/slurm\n"},
    ),
    variables(
        "built of nothing",
        "slurm_packages_source: schedmd\n",
        (
            "group_vars/all.yml:1: slurm_packages_source is schedmd, and the site does not set "
            "slurm_packages_tarball and slurm_packages_version [slurm-tarball-not-said]"
        ),
    ),
    BadSite(
        "some hosts with the distribution's packages",
        (
            (
                "group_vars/slurm-node.yml:1: slurm_packages_source is not the same for node1 and ctl1, and "
                "all hosts of a cluster get the packages that are built once [slurm-sources-differ]"
            ),
        ),
        files={ALL: _BUILT, "group_vars/slurm-node.yml": "slurm_packages_source: distribution\n"},
    ),
    variables(
        "GPUs found by a library that is not there",
        f"{_BUILT}slurmctld_gres_autodetect: nvml\n",
        (
            "group_vars/all.yml:4: Slurm finds these GPUs by NVML, and is built without it "
            "[slurm-built-without-nvml]"
        ),
    ),
)
