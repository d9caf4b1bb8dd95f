import pytest

from deploy.plan.requirements import CLOCK_SECONDS
from tests.unit.host_checks.checks import plugin


def exchange(ahead: float, *, there: float = 0.1, back: float = 0.01) -> object:
    """A question that takes a second to work on, put to a host whose clock is ahead."""
    sent, began = 1000.0, 1000.0 + there
    ended = began + 1.0
    return plugin.Exchange(sent, began + ahead, ended + ahead, ended + back)


def finding(
    ahead: float, *, is_steered: bool = True, service: str = "", there: float = 0.1, back: float = 0.01
) -> dict[str, str] | None:
    limits = {**CLOCK_SECONDS, "is_steered": is_steered}
    found: dict[str, str] | None = plugin.clock_finding(
        exchange(ahead, there=there, back=back), limits, service
    )
    return found


@pytest.mark.parametrize("ahead", [0.0, 0.5, -0.5])
def test_small_differences_are_nothing(ahead: float) -> None:
    assert finding(ahead, is_steered=False) is None


@pytest.mark.parametrize(("there", "back"), [(20.0, 0.01), (0.1, 20.0), (20.0, 20.0)])
def test_a_slow_way_is_no_difference(there: float, back: float) -> None:
    assert finding(0.0, there=there, back=back, is_steered=False) is None


@pytest.mark.parametrize(("ahead", "words"), [(5.3, "about 5 s ahead of"), (-4.7, "about 5 s behind")])
def test_five_seconds_that_nobody_mends_are_an_error(ahead: float, words: str) -> None:
    for there in (0.1, 2.0):
        found = finding(ahead, is_steered=False, there=there)
        assert found
        assert found["severity"] == "error"
        assert words in found["message"]


@pytest.mark.parametrize(
    ("ahead", "is_steered", "service", "severity"),
    [
        (1.5, False, "", "warning"),
        (5.0, True, "", "warning"),
        (5.0, True, "synchronized", "warning"),
        (5.0, True, "unsynchronized", "error"),
        (-5.0, True, "unsynchronized", "error"),
        (301.0, True, "", "error"),
        (-3700.0, True, "synchronized", "error"),
    ],
)
def test_severity(ahead: float, is_steered: bool, service: str, severity: str) -> None:  # noqa: FBT001
    found = finding(ahead, is_steered=is_steered, service=service)
    assert found
    assert (found["reference"], found["severity"]) == ("clock-off", severity)


def test_an_hour_is_said_in_minutes() -> None:
    found = finding(-3700.0)
    assert found
    assert "the clock is 61 min behind" in found["message"]
    assert "munge" in found["message"]
