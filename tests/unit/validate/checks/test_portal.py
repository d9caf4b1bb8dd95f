"""What the portal did for the validation user, judged."""

from deploy.validate.answers import PORTAL
from deploy.validate.result import Outcome
from tests.unit.validate.clusters import Cluster, by_outcome


def with_portal() -> Cluster:
    cluster = Cluster()
    cluster.groups["slurm-portal"] = ("ctl1",)
    return cluster


def test_a_site_without_a_portal() -> None:
    (result,) = Cluster().results("portal")
    assert result.outcome is Outcome.NOT_APPLICABLE


def test_a_server_that_came_computed_and_went() -> None:
    cluster = with_portal()
    cluster.portal = {"why": "", "seconds": 12.5}
    (result,) = cluster.results("portal")
    assert result.outcome is Outcome.PASSED
    assert result.message == "a server was there after 12.5 s, computed, and is gone"


def test_a_portal_that_does_not_do_its_job() -> None:
    cluster = with_portal()
    cluster.portal = {"why": "its server is not gone in time"}
    (result,) = cluster.results("portal")
    assert by_outcome((result,), Outcome.FAILED) == {"ctl1": "its server is not gone in time"}
    assert "journalctl -u slurm-portal" in result.hint


def test_a_portal_that_could_not_be_asked_has_not_passed() -> None:
    cluster = with_portal()
    cluster.silent[(PORTAL, "ctl1")] = "no Python"
    (result,) = cluster.results("portal")
    assert result.outcome is Outcome.NOT_MEASURED
    assert "no Python" in result.message
