"""deploy, installed from its wheel on a login node: another Python than ours, and the newest ansible-core."""

import json
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.lab.state import container_name
from tests.cluster.lab_cluster import Cluster, booted, run

pytestmark = pytest.mark.more

ROOT = Path(__file__).parents[2]
PIP = (sys.executable, "-m", "pip")
GLIBC = ("2_17", "2_28", "2_34")
INSTALL = """\
set -e
chown --recursive root: site
apt-get update --quiet=2
DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --no-install-recommends python3-venv
python3 -m venv tool
tool/bin/pip install --quiet --no-index --find-links wheels gpu-cluster-deploy
"""
VERSIONS = "import sys, ansible.release; print(sys.version_info[1], ansible.release.__version__)"


def wheels(python: str, place: Path) -> Path:
    """Fetches all that an installation takes, as this machine's pip is set up to, for another Python."""
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(place))
    run(*PIP, "wheel", *options, str(ROOT))
    (ours,) = place.iterdir()
    machines = [("--platform", f"manylinux_{glibc}_{platform.machine()}") for glibc in GLIBC]
    wanted = (
        "--python-version",
        python,
        "--only-binary",
        ":all:",
        *(word for two in machines for word in two),
    )
    run(*PIP, "download", "--quiet", *wanted, "--dest", str(place), str(ours))
    return place


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Machines on which nothing was deployed; deploy and the site are on the login node, in root's home."""
    with booted("installed", tmp_path_factory, "--nodes", "1", "--gpus", "0") as made:
        python = made.as_user(
            "python3 -c 'import sys; print(*sys.version_info[:2], sep=str(\".\"))'", user="root"
        )
        login = container_name(made.name, "login1")
        run(
            "podman",
            "cp",
            str(wheels(python.strip(), tmp_path_factory.mktemp("wheels"))),
            f"{login}:/root/wheels",
        )
        run("podman", "cp", str(made.directory), f"{login}:/root/site")
        made.as_user(INSTALL, user="root", seconds=300)
        yield made


def deploy(cluster: Cluster, *options: str) -> dict[str, Any]:
    """Deploys from the login node; returns the report of the run."""
    words = " ".join(("tool/bin/deploy cluster site/inventory.ini --output plain --no-validate", *options))
    cluster.as_user(words, user="root", seconds=900)
    report: dict[str, Any] = json.loads(
        cluster.as_user("tool/bin/deploy report site/inventory.ini --json", user="root")
    )
    assert report["outcome"] == "converged"
    assert report["warnings"] == [], "mitogen or a patch does not fit"
    assert not report["left_over"], "what is managed was not recorded, and so is taken for a remainder"
    return report


def test_the_newest_ansible_deploys_from_a_login_node(fresh: Cluster) -> None:
    said = fresh.as_user(f"tool/bin/python -c '{VERSIONS}'", user="root").split()
    assert (int(said[0]), tuple(map(int, said[1].split(".")[:2]))) >= (13, (2, 21))
    hosts = deploy(fresh)["hosts"]
    assert all(host["changed"] for host in hosts.values())
    assert fresh.as_user("srun hostname") == "node1\n"


def test_an_installation_is_small(fresh: Cluster) -> None:
    megabytes = fresh.as_user("du --summarize --block-size=M tool", user="root").partition("M")[0]
    assert int(megabytes) <= 120


def test_once_more_it_changes_nothing(fresh: Cluster) -> None:
    verified = deploy(fresh)["hosts"].values()
    assert [(host["changed"], host["ok"], bool(host["verified"])) for host in verified] == [(0, 0, True)] * 3
    looked_at = deploy(fresh, "--full")["hosts"].values()
    assert [(host["changed"], bool(host["ok"])) for host in looked_at] == [(0, True)] * 3
