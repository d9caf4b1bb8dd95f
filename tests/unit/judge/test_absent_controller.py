"""A further controller that is not there while a cluster is to get it."""

from pathlib import Path

import pytest

from deploy.errors import DeployError, ExitCode
from deploy.judge.absent_controller import refuse_absent_controller
from deploy.run.events import Event
from deploy.site.inventory import Site, read_site
from tests.unit.judge.test_moved_controller import OURS, checked
from tests.unit.site.sites import INVENTORY, write_site

BOTH = {**OURS, "ctl2": "10.0.0.5"}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Its second controller is ctl2."""
    further = INVENTORY.replace("[slurm-master]\nctl1\n", "[slurm-master]\nctl1\nctl2\n")
    text = further.replace("[all]\n", "[all]\nctl2 ansible_host=10.0.0.5\n")
    assert "ctl1\nctl2" in text
    assert "ctl2 ansible_host" in text
    return read_site(write_site(tmp_path, text))


@pytest.mark.parametrize(
    ("events", "worked_on"),
    [
        ([checked("ctl1", OURS, state=True), checked("ctl2")], ["ctl1", "ctl2"]),
        ([checked("ctl1", BOTH, state=True)], ["ctl1"]),
        ([checked("ctl1", {"ctl1": "", "former-name": "10.0.0.5"}, state=True)], ["ctl1"]),
        ([checked("ctl1")], ["ctl1"]),
        ([checked("ctl1", OURS, state=True)], []),
        ([checked("ctl2"), checked("node1", OURS)], ["ctl2"]),
        ([], ["ctl1", "ctl2"]),
    ],
    ids=["there", "away for a while", "renamed", "no cluster yet", "not touched", "joins alone", "nobody"],
)
def test_others_may_go_on(site: Site, events: list[Event], worked_on: list[str]) -> None:
    refuse_absent_controller(events, site, worked_on, None)


@pytest.mark.parametrize("controllers", [BOTH, {**OURS, "former-name": "10.0.0.5"}])
def test_a_limit_may_leave_out_one_that_the_cluster_has(site: Site, controllers: dict[str, str]) -> None:
    events = [checked("ctl1", controllers, state=True), checked("ctl2")]
    refuse_absent_controller(events, site, ["ctl1", "ctl2"], {"ctl1"})


@pytest.mark.parametrize(("answers", "limit"), [(["node1"], None), (["node1", "ctl2"], {"ctl1", "node1"})])
def test_the_first_is_not_told_of_one_that_is_not_there(
    site: Site, answers: list[str], limit: set[str] | None
) -> None:
    former = {"node1": OURS, "ctl2": BOTH}
    others = [checked(name, former[name]) for name in answers]
    with pytest.raises(DeployError) as caught:
        refuse_absent_controller([checked("ctl1", OURS, state=True), *others], site, ["ctl1", "ctl2"], limit)
    (finding,) = caught.value.findings
    assert (finding.where, finding.reference) == ("ctl2", "new-controller-absent")
    assert caught.value.exit_code is ExitCode.UNREACHABLE
