"""Enroot and Pyxis themselves, with the registry of the site: what users type, and where images come from.

No registry of packages has the two. ``DEPLOY_ENROOT_PACKAGES`` names Enroot's two .deb files
(enroot and enroot+caps) with a colon between, ``DEPLOY_PYXIS_SOURCE`` the archive of Pyxis' source; without
them nothing of this runs.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.lab.state import container_name
from tests.cluster.conftest import RELEASES
from tests.cluster.images import OTHER, push, secret, start_other_registry
from tests.cluster.lab_cluster import Cluster, booted, run

_NAMES = ("DEPLOY_ENROOT_PACKAGES", "DEPLOY_PYXIS_SOURCE")
_MISSING = [name for name in _NAMES if not os.environ.get(name)]
pytestmark = [
    pytest.mark.more,
    pytest.mark.skipif(
        bool(_MISSING), reason=f"SKIPPED: {' and '.join(_MISSING)} not set: no package archive has it"
    ),
]
REGISTRY = "ctl1:5000"
HERE = f"https://{REGISTRY}"
_VARIABLES = {
    "slurm_registry_upstreams": [{"name": "docker.io", "url": OTHER}],
    "user_environment_variables": [{"name": "WORK", "value": "/work/$USER"}],
    "user_environment_job_variables": [
        {"name": "TMPDIR", "value": "/tmp"},
        {"name": "TASK", "value": "$SLURM_JOB_ID.$SLURM_PROCID"},
    ],
    "enroot_image_directory": "/home/images",
}


def _declare(cluster: Cluster) -> None:
    """Containers by the programs themselves, and a registry, in the inventory."""
    files = [Path(name) for variable in _NAMES for name in os.environ[variable].split(":")]
    for file in files:
        run("podman", "cp", str(file), f"{container_name(cluster.name, 'ctl1')}:/home/{file.name}")
    *packages, source = (
        {"url": f"file:///home/{file.name}", "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        for file in files
    )
    groups = "\n[slurm-container:children]\nslurm-node\n\n[slurm-registry]\nctl1\n"
    cluster.inventory.write_text(cluster.inventory.read_text() + groups)
    of_programs = {"enroot_package_files": packages, "pyxis_source": source | {"version": "0.24.0"}}
    variables = of_programs | _VARIABLES
    (cluster.directory / "group_vars/slurm-cluster.yml").write_text(json.dumps(variables))


@pytest.fixture(scope="module", params=RELEASES)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    release = str(request.param)
    with booted(
        f"images-{release}", tmp_path_factory, "--nodes", "2", "--gpus", "2", release=release
    ) as made:
        _declare(made)
        made.deploy()
        made.on("ctl1", "apt-get", "install", "--yes", "--quiet", "busybox-static", seconds=300)
        start_other_registry(made)
        push(made, OTHER, "team/cached:1", "cached")
        push(made, HERE, "team/tool:1", "tool", login=f"registry:{secret(made, 'slurm_registry_password')}")
        yield made


def _srun(cluster: Cluster, options: str, command: str, *, expect: int | None = 0) -> str:
    return cluster.as_user(f"srun --quiet {options} {command}", expect=expect, seconds=300)


def test_an_image_of_the_registry_runs_on_two_nodes(cluster: Cluster) -> None:
    said = _srun(
        cluster, f"-N2 --container-image='{REGISTRY}#team/tool:1'", "sh -c 'cat /etc/os-release; hostname'"
    )
    assert {"NAME=tool", "node1", "node2"} <= set(said.split())


def test_images_of_other_registries_come_from_the_caches(cluster: Cluster) -> None:
    """Nothing here reaches the real docker.io, and nobody named a cache."""
    said = _srun(cluster, "--container-image=team/cached:1", "cat /etc/os-release")
    assert "NAME=cached" in said.split()
    _srun(cluster, "", "enroot import --output cached.sqsh docker://team/cached:1")
    assert (
        "NAME=cached" in _srun(cluster, "--container-image=$PWD/cached.sqsh", "cat /etc/os-release").split()
    )


def test_what_runs_before_tasks_runs_for_those_in_containers(cluster: Cluster) -> None:
    words = "$SLURM_PROCID $TASK $WORK $TMPDIR $OF_THE_IMAGE $SLURM_SCRIPT_CONTEXT"
    show = f"""sh -c 'echo "{words}"; touch $TMPDIR/x'"""
    for options, image in (("", ""), (f"--container-image='{REGISTRY}#team/tool:1'", " tool")):
        said = _srun(cluster, f"-N2 --ntasks-per-node=2 -O {options}", show).split("\n")
        found = sorted(line.split(maxsplit=1) for line in said if line.strip())
        job = found[0][1].split(".")[0]
        assert found == [[str(task), f"{job}.{task} /work/alice /tmp{image}"] for task in range(4)], said


def test_a_named_container_keeps_what_was_written_within_the_job(cluster: Cluster) -> None:
    once = "srun -N1 -n1 --container-name=mine"
    script = (
        "#!/bin/bash -l\nset -e\n"
        f"{once} --container-image='{REGISTRY}#team/tool:1' --container-writable "
        "sh -c 'echo kept >/written'\n"
        f"{once} cat /written\n"
        f"{once} --container-mounts=/etc/hostname:/of-the-host:ro cat /of-the-host\n"
        f"{once} sh -c 'echo no >/written' && exit 1\necho $TASK\n"
    )
    cluster.as_user(f"cat >job.sh <<'END'\n{script}END\n")
    cluster.as_user("sbatch --quiet --wait --output=job.out -w node1 job.sh", seconds=300)
    said = cluster.as_user("cat job.out").split()
    assert "kept" in said
    assert "node1" in said
    # With the job its containers go.
    assert cluster.on("node1", "sh", "-c", "ls /var/lib/enroot/data/*") == ""


def test_a_container_has_the_jobs_gpus_and_no_others(cluster: Cluster) -> None:
    look = "sh -c 'for gpu in /dev/nvidia[0-9]; do head -c1 $gpu 2>&1; done'"
    said = _srun(cluster, f"--gpus-per-node=1 --container-image='{REGISTRY}#team/tool:1'", look, expect=None)
    assert (said.count("No such device"), said.count("not permitted")) == (1, 1), said


def test_nothing_more_is_needed(cluster: Cluster) -> None:
    assert cluster.plan().splitlines() == ["plan: nothing to change"]


def test_pulling_with_credentials_alone(cluster: Cluster) -> None:
    with (cluster.directory / "group_vars/all.yml").open("a") as file:
        file.write("slurm_registry_pull: accounts\n")
    cluster.deploy()
    image = f"docker://{REGISTRY}#team/tool:1"
    refused = _srun(cluster, "", f"enroot import --output refused.sqsh '{image}'", expect=None)
    assert "401" in refused
    password = secret(cluster, "slurm_registry_password")
    cluster.as_user(
        "umask 077; mkdir -p .config/enroot; "
        f"echo 'machine ctl1 login registry password {password}' >.config/enroot/.credentials"
    )
    _srun(cluster, "", f"enroot import --output allowed.sqsh '{image}'")
    assert (
        "NAME=tool"
        in _srun(cluster, f"--container-image='{REGISTRY}#team/tool:1'", "cat /etc/os-release").split()
    )
