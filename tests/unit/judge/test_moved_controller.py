"""A site whose controller is another machine than the one that the cluster ran on."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploy.judge.moved_controller import Moved, moved_controller, with_move
from deploy.judge.preview import preview_of
from deploy.run.events import Event
from deploy.site.inventory import Site, read_site
from tests.unit.judge.test_preview import PENDING, RUNNING
from tests.unit.show.runs import result
from tests.unit.site.sites import INVENTORY, write_site

OLD = {"ctl0": "10.0.0.9"}
OURS = {"ctl1": "10.0.0.1"}


def checked(name: str, controllers: Mapping[str, str] | None = None, *, state: bool = False) -> Event:
    file = "/run/slurm/conf/slurm.conf"
    cluster = {"file": file, "name": "ours", "controllers": dict(controllers)} if controllers else None
    serves: dict[str, Any] = {"cluster": cluster, "secrets": [], "state": state}
    return replace(result(name), answer={"findings": [], "checked": [], "serves": serves})


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return read_site(write_site(tmp_path))


@pytest.mark.parametrize(
    "events",
    [
        [],
        [checked("node1", OLD)],
        [checked("ctl1"), checked("node1")],
        [checked("ctl1", OURS, state=True), checked("node1", OURS)],
        [checked("ctl1", OURS), checked("node1", {"ctl0": "10.0.0.9", "ctl1": ""})],
        [checked("ctl1", {"old-name": "10.0.0.1"}), checked("node1", {"old-name": "10.0.0.1"})],
        [checked("ctl1", state=True), checked("node1", OURS)],
    ],
    ids=["nobody", "unreachable", "new", "ours", "both", "renamed", "installed anew, with its state"],
)
def test_the_controller_stays(site: Site, events: list[Event]) -> None:
    assert moved_controller(events, site) is None


@pytest.mark.parametrize(
    ("events", "before", "has_state"),
    [
        ([checked("ctl1"), checked("node1", OLD)], "ctl0", False),
        ([checked("node1", OLD), checked("ctl1", OLD, state=True)], "ctl0", True),
        ([checked("ctl1", OURS, state=True), checked("node1", OLD)], "ctl0", True),
        ([checked("ctl1"), checked("login1", {"login1": ""})], "login1", False),
        ([checked("ctl1"), checked("node1", OURS)], "ctl1", False),
    ],
    ids=["new machine", "was a node", "set up alone", "the old one logs in", "installed anew"],
)
def test_a_controller_without_the_state_of_the_cluster(
    site: Site, events: list[Event], before: str, *, has_state: bool
) -> None:
    moved = moved_controller(events, site)
    assert moved
    assert (moved.before, moved.after, moved.has_state) == (before, "ctl1", has_state)


def test_controllers_of_one_cluster_share_their_state(tmp_path: Path) -> None:
    """Another machine takes the first place, and finds what the old one wrote."""
    two = INVENTORY.replace("[slurm-master]\n", "[slurm-master]\nctl2\n").replace("[all]\n", "[all]\nctl2\n")
    site = read_site(write_site(tmp_path, two))
    assert site.controller.name == "ctl2"
    assert moved_controller([checked("ctl2", state=True), checked("node1", OURS)], site) is None
    moved = moved_controller([checked("ctl2"), checked("node1", OURS)], site)
    loss = moved and moved.loss([])
    assert loss
    assert "mount on ctl2 the storage that controllers share" in loss.why


def moved(*, has_state: bool = False) -> Moved:
    return Moved("node1", "/run/slurm/conf/slurm.conf", "ctl0", "ctl1", has_state)


@pytest.mark.parametrize(
    ("has_state", "queue", "lost", "needs_consent"),
    [
        (False, [RUNNING, PENDING], ["7", "8"], True),
        (True, [RUNNING], ["7"], True),
        (False, [], [], False),
        (False, None, [], True),
    ],
    ids=["jobs", "an old copy of the state", "no jobs", "nobody answers"],
)
def test_what_is_lost(
    queue: list[dict[str, str]] | None, lost: list[str], *, has_state: bool, needs_consent: bool
) -> None:
    preview = with_move(preview_of([]), moved(has_state=has_state), queue)
    (loss,) = preview.losses
    assert (loss.parameter, loss.before, loss.after) == ("SlurmctldHost", "ctl0", "ctl1")
    assert [job.id for job in loss.jobs] == lost
    assert preview.needs_consent is needs_consent
    assert "stop slurmctld on ctl0 and copy its StateSaveLocation to ctl1" in loss.why
    assert "deploy restore" in loss.why


def test_a_state_that_was_copied_from_a_controller_that_stopped_loses_nothing() -> None:
    before: Any = preview_of([])
    assert with_move(before, moved(has_state=True), None) is before
