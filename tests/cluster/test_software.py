"""What users work with: built by EasyBuild and run on a node, compilers, conda, shared directories."""

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.lab.state import container_name
from tests.cluster.lab_cluster import Cluster, booted, run

pytestmark = [pytest.mark.one_release, pytest.mark.more]
_TRUST = Path("/etc/ssl/certs/ca-certificates.crt")
# Stands in for micromamba, which no registry has.
_PROGRAM = '#!/bin/sh\necho "on $(hostname) $MAMBA_ROOT_PREFIX $*"\n'
_SITE = """
software_tree_directory: /home/software
software_tree_owner: bob
shared_directories_paths:
  - {{path: /home/data, owner: bob, mode: "2755"}}
conda_version: "2.3.2"
conda_files:
  - {{version: "2.3.2", url: file:///srv/micromamba, sha256: {checksum}}}
user_environment_build_tools: true
seff_reportseff: true
"""
_SOURCE = """
mkdir --parents greet-1.0 && cd greet-1.0
printf 'all:\\n\\tcc -o greet greet.c\\ninstall:\\n' > Makefile
printf '\\tmkdir -p $(PREFIX)/bin\\n\\tcp greet $(PREFIX)/bin\\n' >> Makefile
echo '#include <stdio.h>' > greet.c
echo 'int main(void) { puts("built by EasyBuild"); return 0; }' >> greet.c
cd .. && tar --create --gzip --file greet-1.0.tar.gz greet-1.0
"""
_EASYCONFIG = """\
easyblock = "ConfigureMake"
name = "greet"
version = "1.0"
homepage = "https://greet.example"
description = "Says what built it"
toolchain = SYSTEM
sources = ["greet-1.0.tar.gz"]
skipsteps = ["configure"]
installopts = "PREFIX=%(installdir)s"
sanity_check_paths = {"files": ["bin/greet"], "dirs": []}
moduleclass = "tools"
"""
_CMAKE = """\
cmake_minimum_required(VERSION 3.18)
project(add C CXX Fortran)
add_executable(add add.f90)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Machines that trust whom this one trusts, as archives come from PyPI."""
    with booted("software", tmp_path_factory, "--nodes", "1", "--gpus", "0") as made:
        place = tmp_path_factory.mktemp("brought")
        (place / "micromamba").write_text(_PROGRAM)
        shutil.copyfile(_TRUST, place / "trusted.crt")
        for host in ("ctl1", "login1", "node1"):
            container = container_name(made.name, host)
            run("podman", "cp", str(place / "micromamba"), f"{container}:/srv/micromamba")
            run("podman", "cp", str(place / "trusted.crt"), f"{container}:{_TRUST}")
        checksum = hashlib.sha256(_PROGRAM.encode()).hexdigest()
        with (made.directory / "group_vars/all.yml").open("a") as file:
            file.write(_SITE.format(checksum=checksum))
        with (made.directory / "group_vars/slurm-login.yml").open("a") as file:
            file.write("user_environment_extra_packages: [tree]\n")
        made.deploy()
        yield made


def test_what_easybuild_built_runs_on_a_node(cluster: Cluster) -> None:
    cluster.as_user(_SOURCE, user="bob")
    cluster.as_user(f"cat > greet-1.0.eb <<'END'\n{_EASYCONFIG}END\n", user="bob")
    assert "COMPLETED" in cluster.as_user("eb greet-1.0.eb", user="bob", seconds=600)
    assert cluster.as_user("module load greet/1.0 && srun --quiet greet") == "built by EasyBuild\n"
    script = "#!/bin/bash\nmodule load greet\ngreet\n"
    cluster.as_user(f"printf '%s' '{script}' | sbatch --wait --export=NONE --output=greeted")
    assert cluster.as_user("cat greeted") == "built by EasyBuild\n"


def test_compilers_are_on_login_nodes(cluster: Cluster) -> None:
    cluster.as_user(f"mkdir -p add && cd add && cat > CMakeLists.txt <<'END'\n{_CMAKE}END\n")
    cluster.as_user(
        "cd add && printf 'print *, 40 + 2\\nend\\n' > add.f90 && cmake -G Ninja . && ninja", seconds=300
    )
    assert cluster.as_user("srun --quiet add/add").strip() == "42"
    assert "cmake" not in cluster.on("node1", "sh", "-c", "ls /usr/bin")


def test_further_packages_are_in_their_group_alone(cluster: Cluster) -> None:
    cluster.as_user("tree --version")
    cluster.on("node1", "test", "!", "-e", "/usr/bin/tree")


def test_conda_is_in_jobs_and_in_its_users_directory(cluster: Cluster) -> None:
    said = cluster.as_user("srun --quiet micromamba env list")
    assert said == "on node1 /home/alice/.micromamba env list\n"


def test_reportseff_shows_jobs_of_its_user(cluster: Cluster) -> None:
    job = cluster.as_user("sbatch --parsable --wait --output=/dev/null --wrap='sleep 1'").strip()
    said = cluster.as_user(f"reportseff --no-color {job}")
    assert [line.split()[:2] for line in said.splitlines() if line.split()[:1] == [job]] == [
        [job, "COMPLETED"]
    ]


def test_a_shared_directory_is_its_owners(cluster: Cluster) -> None:
    cluster.as_user("touch /home/data/file", user="bob")
    assert cluster.as_user("srun --quiet ls /home/data") == "file\n"
    assert "Permission denied" in cluster.as_user("touch /home/data/x", expect=1)


def test_a_rerun_changes_nothing(cluster: Cluster) -> None:
    assert "converged: no task failed (0 changes" in cluster.deploy("--full").stdout
