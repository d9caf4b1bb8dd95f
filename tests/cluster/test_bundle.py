"""A cluster on machines without any network but their own, from a bundle that this machine serves."""

import functools
import http.server
import ipaddress
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, run

pytestmark = pytest.mark.more

FETCH = ("apt-get", "--error-on=any", "-o", "Acquire::http::Timeout=3", "update")


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def isolated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Machines that nothing reaches but this one."""
    with booted("isolated", tmp_path_factory, "--nodes", "1", "--gpus", "0", "--isolated") as made:
        yield made


@pytest.fixture
def served(isolated: Cluster, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A directory, and where the machines see it."""
    found = re.search(r"^ctl1 .*ansible_host=(\S+)", isolated.inventory.read_text(), re.MULTILINE)
    assert found
    network = ipaddress.ip_network(f"{found[1]}/24", strict=False)
    handler = functools.partial(Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer((str(network[1]), 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield tmp_path, f"http://{network[1]}:{server.server_port}"
        server.shutdown()


def test_a_cluster_without_any_other_network(isolated: Cluster, served: tuple[Path, str]) -> None:
    directory, url = served
    isolated.on("node1", *FETCH, expect=100)
    inventory = str(isolated.inventory)
    said = run(*DEPLOY, "bundle", inventory, str(directory), "--release", "trixie", "--url", url, seconds=600)
    assert re.search(r"^\d{3} packages and 0 files, \d+ MB, in ", said.stdout, re.MULTILINE)
    settings = ("-e", f"@{directory / 'variables.json'}")
    isolated.deploy(*settings)
    assert isolated.as_user("srun -w node1 hostname") == "node1\n"
    isolated.deploy("--full", *settings)
    assert not any(host["changed"] for host in isolated.report()["hosts"].values())
