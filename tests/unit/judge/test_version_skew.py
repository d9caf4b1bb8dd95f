from dataclasses import replace

import pytest

from deploy.judge.version_skew import release, skew, understands, versions
from tests.unit.show.runs import result


@pytest.mark.parametrize(
    ("text", "expected"),
    [("24.11.5-4", (24, 11)), ("22.05.8-4+deb12u3", (22, 5)), ("1:23.11.4-1", (23, 11)), ("", None)],
)
def test_release_of_a_package_version(text: str, expected: tuple[int, int] | None) -> None:
    assert release(text) == expected


@pytest.mark.parametrize(
    ("controller", "node", "good"),
    [
        ((24, 11), (24, 11), True),
        ((24, 11), (23, 2), True),
        ((24, 11), (22, 5), False),
        ((23, 11), (22, 5), True),
        ((23, 11), (21, 8), False),
        ((22, 5), (24, 11), False),
        ((26, 5), (24, 11), True),
        ((26, 5), (23, 11), False),
        ((31, 5), (25, 11), True),
    ],
)
def test_which_releases_work_together(
    controller: tuple[int, int],
    node: tuple[int, int],
    good: bool,  # noqa: FBT001
) -> None:
    assert understands(controller, node) is good


def test_versions_come_from_the_check_and_from_the_controller() -> None:
    events = [
        replace(result("node1"), answer={"slurm_version": "22.05.8-4"}),
        replace(result("ctl1"), answer={"slurm": {"version": "24.11.5-4", "jobs": []}}),
        replace(result("node2"), answer={"slurm_version": ""}),
        result("node3"),
    ]
    assert versions(events) == {"node1": "22.05.8-4", "ctl1": "24.11.5-4"}


def test_a_host_that_the_controller_does_not_understand_is_found() -> None:
    found = {"ctl1": "24.11.5", "node1": "24.11.5", "node2": "22.05.8", "node3": "25.05.1"}
    assert [(finding.where, finding.reference) for finding in skew(found, ["ctl1"], ["ctl1"])] == [
        ("node2", "slurm-version-skew"),
        ("node3", "slurm-version-skew"),
    ]
    assert list(skew({"node1": "22.05.8"}, ["ctl1"], ["ctl1"])) == []


@pytest.mark.parametrize(("other", "is_found"), [("24.11.5", False), ("24.05.4", True), ("26.05.1", True)])
def test_controllers_have_one_release(*, other: str, is_found: bool) -> None:
    """Each could have to read what the other one wrote."""
    found = {"ctl1": "24.11.3", "ctl2": other, "node1": "24.05.4"}
    named = [(finding.where, finding.message) for finding in skew(found, ["ctl1", "ctl2"], [])]
    release_of = other[:5]
    message = f"its slurmctld {release_of} could not take over from ctl1 with 24.11, nor the other way round"
    assert named == ([("ctl2", message)] if is_found else [])


@pytest.mark.parametrize(("other", "is_found"), [("26.05.5", False), ("24.11.5", True)])
def test_hosts_of_slurmdbd_have_one_release(*, other: str, is_found: bool) -> None:
    """A controller takes either; the one that stands by would take the other's tables for its own."""
    found = {"ctl1": "26.05.5", "db1": "26.05.5", "db2": other, "node1": "24.11.5"}
    named = [(finding.where, finding.message) for finding in skew(found, ["ctl1"], ["db1", "db2"])]
    message = "its slurmdbd 24.11 could not take over from db1 with 26.05, nor the other way round"
    assert named == ([("db2", message)] if is_found else [])
    # Of one that was not asked nothing is known.
    assert list(skew({**found, "db1": ""}, ["ctl1"], ["db1", "db2"])) == []
