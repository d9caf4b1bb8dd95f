"""A new service, from its own directory and one line: deployed, watched, walled, recorded."""

import json
from collections.abc import Iterator

import pytest

from tests.cluster.dashboard_queries import ask
from tests.cluster.lab_cluster import Cluster, booted, wait_until
from tests.cluster.test_monitoring import page_of
from tests.toy import with_toy

pytestmark = pytest.mark.more


@pytest.fixture(scope="module")
def toyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with monitoring and a firewall, deployed by the project that has the toy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(with_toy(tmp_path_factory.mktemp("project"))))
        patch.setenv("PYTHONSAFEPATH", "1")
        with booted("toy", tmp_path_factory, "--nodes", "1", "--gpus", "0", "--monitoring") as made:
            place = made.directory / "host_vars/ctl1.yml"
            place.parent.mkdir(exist_ok=True)
            place.write_text(json.dumps({"firewall_admin_networks": ["10.0.0.0/8"], "toy_number": 41}))
            made.deploy()
            yield made


def test_it_runs_and_is_watched(toyed: Cluster) -> None:
    assert toyed.on("ctl1", "systemctl", "is-active", "toy") == "active\n"

    def is_asked() -> bool:
        return [series["value"][1] for series in ask(page_of(toyed, 9090))("toy_number")] == ["41"]

    wait_until("Prometheus asks the toy", is_asked, 120)


def test_the_firewall_lets_only_the_watcher_in(toyed: Cluster) -> None:
    rules = [line for line in toyed.on("ctl1", "nft", "list", "ruleset").splitlines() if "9999" in line]
    assert rules


def test_it_is_in_the_status_and_drift_is_named_and_mended(toyed: Cluster) -> None:
    toyed.on("ctl1", "sh", "-c", "echo 1 > /srv/toy/metrics; systemctl stop toy")
    host = toyed.status(expect=1)["ctl1"]
    drift = "\n".join(host["record"]["drift"])
    assert "/srv/toy/metrics" in drift
    assert "what the toy serves" in drift
    assert "toy" in json.dumps(host)
    toyed.deploy()
    assert toyed.status()["ctl1"]["record"]["drift"] == []
    assert toyed.on("ctl1", "cat", "/srv/toy/metrics") == "toy_number 41\n"
    toyed.deploy()
    assert not any(host["changed"] or host["ok"] for host in toyed.report()["hosts"].values())
