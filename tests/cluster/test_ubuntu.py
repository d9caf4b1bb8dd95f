"""What deploy does otherwise on Ubuntu, on machines with Debian's packages under Ubuntu's name and settings.

Nothing here is from Ubuntu's archive: versions of packages and kernels are Debian's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.lab.image import image_name
from tests.cluster.jobs import submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, run
from tests.cluster.validated import validated

pytestmark = pytest.mark.more


@dataclass(frozen=True)
class Ubuntu:
    """A release as it is after an installation, and the Debian that stands in for it."""

    codename: str
    version: str
    debian: str
    ssh_unit: str

    @property
    def image(self) -> str:
        return f"localhost/deploy-test-ubuntu:{self.codename}"

    def lay_out(self, place: Path) -> None:
        """Writes what podman builds the image from."""
        base = run(*DEPLOY, "lab", "image", "--release", self.debian).stdout.split()[0]
        files = {
            "usr/lib/os-release": f"""\
NAME="Ubuntu"
ID=ubuntu
ID_LIKE=debian
VERSION_ID="{self.version}"
VERSION_CODENAME={self.codename}
PRETTY_NAME="Ubuntu {self.version} LTS"
""",
            "etc/lsb-release": f"""\
DISTRIB_ID=Ubuntu
DISTRIB_RELEASE={self.version}
DISTRIB_CODENAME={self.codename}
""",
            "etc/apt/apt.conf.d/20auto-upgrades": 'APT::Periodic::Unattended-Upgrade "1";\n',
            "etc/cloud/cloud.cfg.d/05_logging.cfg": "# cloud-init is here\n",
            "Containerfile": f"""\
FROM {base}
RUN userdel --remove admin && apt-get update -qq && DEBIAN_FRONTEND=noninteractive \\
  apt-get install -qq --no-install-recommends unattended-upgrades needrestart
COPY etc/ /etc/
COPY usr/ /usr/
RUN systemctl disable ssh.service && systemctl enable {self.ssh_unit}
""",
        }
        for name, text in files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)


RELEASES = [
    pytest.param(Ubuntu("noble", "24.04", "trixie", "ssh.socket"), id="noble"),
    pytest.param(Ubuntu("jammy", "22.04", "bookworm", "ssh.service"), id="jammy"),
]


@pytest.fixture(scope="module", params=RELEASES)
def ubuntu(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ubuntu]:
    """Whose image is there; the lab makes its own of it."""
    release: Ubuntu = request.param
    place = tmp_path_factory.mktemp("image")
    release.lay_out(place)
    run("podman", "build", "--quiet", "--tag", release.image, str(place), seconds=900)
    yield release
    run("podman", "rmi", image_name(release.image), release.image, expect=None)


@pytest.fixture(scope="module")
def cluster(ubuntu: Ubuntu, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """With one node, as good as new."""
    with booted("ubuntu", tmp_path_factory, "--nodes", "1", release=ubuntu.image) as made:
        yield made


def test_a_first_deployment_and_a_rerun(cluster: Cluster) -> None:
    cluster.deploy()
    assert "converged: no task failed (0 changes" in cluster.deploy("--full").stdout


def test_what_is_otherwise_there(cluster: Cluster, ubuntu: Ubuntu) -> None:
    assert "pool ntp.ubuntu.com iburst" in cluster.on("ctl1", "cat", "/etc/chrony/chrony.conf")
    assert cluster.on("node1", "systemctl", "is-active", ubuntu.ssh_unit) == "active\n"
    said = cluster.on("node1", "apt-config", "dump", "Unattended-Upgrade::Package-Blacklist")
    assert '"slurm";' in said
    kept = cluster.on("node1", "cat", "/etc/cloud/cloud.cfg.d/99-hosts-file.cfg")
    assert "manage_etc_hosts: false" in kept
    sackd = cluster.on("login1", "systemctl", "is-active", "sackd", expect=None).strip()
    assert sackd == {"noble": "active", "jammy": "inactive"}[ubuntu.codename]


def test_a_job_runs_on_a_node_that_came_later(cluster: Cluster) -> None:
    cluster.up("--nodes", "2", "--write-inventory")
    cluster.deploy()
    job = submit(cluster, "-w node2 --mem=50M", "hostname")
    wait_for_job(cluster, job, "COMPLETED")


def test_the_validation_passes(cluster: Cluster) -> None:
    found = validated(cluster, "--quick", expect=0)
    assert found["services"]["outcome"] == found["accounting"]["outcome"] == "passed"
