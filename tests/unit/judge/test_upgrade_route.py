import pytest

from deploy.errors import DeployError, ExitCode
from deploy.judge.upgrade_route import is_of, kept_releases, refuse_route, way


@pytest.mark.parametrize(
    ("version", "wanted", "expected"),
    [
        ("24.11.5-4+deb13u1", "24.11", True),
        ("24.11.5-4+deb13u1", "24.11.5", True),
        ("24.11.5-4", "24.1", False),
        ("24.11.15-1", "24.11.1", False),
        ("1:26.05.5-1", "26.05", True),
        ("26.05.5-1", "24.11", False),
        ("", "24.11", False),
    ],
)
def test_a_version_is_of_a_release_by_its_whole_numbers(version: str, wanted: str, *, expected: bool) -> None:
    assert is_of(version, wanted) is expected


@pytest.mark.parametrize(
    ("old", "new", "hops"),
    [
        ((24, 11), (26, 5), [(26, 5)]),
        ((22, 5), (24, 11), [(23, 11), (24, 11)]),
        ((20, 11), (22, 5), [(22, 5)]),
        ((20, 11), (26, 5), [(22, 5), (23, 11), (25, 5), (26, 5)]),
        ((24, 5), (24, 11), [(24, 11)]),
    ],
)
def test_the_way_goes_in_as_few_hops_as_slurm_supports(
    old: tuple[int, int], new: tuple[int, int], hops: list[tuple[int, int]]
) -> None:
    assert list(way(old, new)) == hops


def refused(wanted: str, **installed: str) -> str:
    with pytest.raises(DeployError) as caught:
        refuse_route(wanted, installed, "inventory.ini")
    assert caught.value.exit_code is ExitCode.BAD_INPUT
    return str(caught.value)


def test_a_hop_that_is_too_long_names_the_releases_between() -> None:
    said = refused("24.11", ctl1="22.05.8-4+deb12u3")
    assert "upgrade-hop-too-long" in said
    assert "Slurm 24.11 takes over from 23.02 and later, and this host has 22.05" in said
    assert "go over 23.11" in said


@pytest.mark.parametrize(("wanted", "version"), [("24.11", "26.05.5-1"), ("26.05.4", "26.05.5-1")])
def test_a_downgrade_is_refused_with_the_reason(wanted: str, version: str) -> None:
    said = refused(wanted, ctl1=version)
    assert "upgrade-is-downgrade" in said
    assert "do not read the database and the state of a newer release" in said


def test_a_release_that_is_not_known_is_refused() -> None:
    assert "upgrade-unknown-release" in refused("31.05", ctl1="26.05.5-1")


def test_one_host_that_is_too_old_is_enough() -> None:
    said = refused("26.05", ctl1="26.05.5-1", node1="23.11.4-1")
    assert said.startswith("node1: ")


def test_what_slurm_supports_is_not_refused() -> None:
    refuse_route("26.05", {"ctl1": "24.11.5-4+deb13u1", "node1": "26.05.5-1", "login1": ""}, "inventory.ini")
    refuse_route("26.05.5", {"ctl1": "26.05.4-1"}, "inventory.ini")


def test_hosts_keep_their_release_and_new_ones_get_the_controllers() -> None:
    wanted = dict.fromkeys(("ctl1", "node1", "new1", "done1"), "26.05")
    installed = {"ctl1": "24.11.5-4", "node1": "24.11.5-4", "done1": "26.05.5-1"}
    assert kept_releases(wanted, installed, ["ctl1"]) == dict.fromkeys(("ctl1", "node1", "new1"), "24.11")


def test_a_new_first_controller_gets_the_release_of_the_others() -> None:
    wanted, installed = dict.fromkeys(("ctl1", "ctl2"), "26.05"), {"ctl1": "", "ctl2": "24.11.5-4"}
    assert kept_releases(wanted, installed, ["ctl1", "ctl2"]) == dict.fromkeys(wanted, "24.11")


def test_a_new_cluster_gets_what_the_site_wants_and_a_site_that_says_nothing_keeps_nothing() -> None:
    assert kept_releases({"ctl1": "26.05"}, {"ctl1": ""}, ["ctl1"]) == {}
    assert kept_releases({"ctl1": ""}, {"ctl1": "24.11.5-4"}, ["ctl1"]) == {}
