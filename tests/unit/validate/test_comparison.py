"""What became worse or better between two validations, and which one is the earlier."""

import json
from pathlib import Path

import pytest

from deploy.engine.reports import LAST, validation_before
from deploy.errors import DeployError, ExitCode
from deploy.validate.comparison import Kind, compare
from deploy.validate.record import as_data, keep, last_before
from deploy.validate.result import Judged, Result, Validation, failed, not_applicable, not_measured, passed


def validation(*results: Result, check: str = "speed", began: float = 1000.0) -> Validation:
    return Validation("c", began, 1.0, (Judged(check, "", results),))


def measured(value: float, *, is_rate: bool = False, unit: str = "s") -> Result:
    return passed("ran", "n1", value=value, unit=unit, is_rate=is_rate)


@pytest.mark.parametrize(
    ("before", "now", "kinds"),
    [
        (passed("a", "n1"), failed("b", "n1"), [Kind.WORSE]),
        (failed("a", "n1"), passed("b", "n1"), [Kind.BETTER]),
        (passed("a", "n1"), not_measured("busy", "n1"), [Kind.GONE]),
        (failed("a", "n1"), failed("b", "n1"), []),
        (not_measured("a", "n1"), failed("b", "n1"), []),
        (passed("a", "n1"), not_applicable("none", "n1"), []),
        (passed("a", "n1"), failed("b", "n2"), []),
        (measured(1.0), measured(1.2), [Kind.SLOWER]),
        (measured(1.0), measured(1.05), []),
        (measured(1.0), measured(0.8), [Kind.FASTER]),
        (measured(1.0, is_rate=True), measured(0.8, is_rate=True), [Kind.SLOWER]),
        (measured(1.0), measured(900.0, unit="ms"), []),
        (measured(0.0), measured(1.0), []),
    ],
)
def test_a_result_that_changed(before: Result, now: Result, kinds: list[Kind]) -> None:
    found = compare(json.loads(json.dumps(as_data(validation(before)))), validation(now))
    assert [change.kind for change in found.changes] == kinds


def test_how_long_a_job_took_to_start_is_no_change() -> None:
    found = compare(as_data(validation(measured(1.0), check="job")), validation(measured(9.0), check="job"))
    assert (found.compared, found.changes) == (1, ())


def test_the_last_thirty_are_kept_and_the_last_one_before_is_taken(tmp_path: Path) -> None:
    for second in range(40):
        keep(tmp_path, validation(began=float(second)))
    assert len([*(tmp_path / "validations").iterdir()]) == 30
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in (tmp_path / "validations").iterdir())
    earlier = last_before(tmp_path, 25.0)
    assert earlier is not None
    assert earlier["at"] == "1970-01-01T00:00:24+00:00"
    assert last_before(tmp_path, 10.0) is None
    # One that was cut off is as good as none.
    (tmp_path / "validations" / "19700101T000024Z.json").write_text("{")
    assert (last_before(tmp_path, 25.0) or {})["at"] == "1970-01-01T00:00:23+00:00"


def test_a_site_without_a_validation_says_so(tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.ini"
    inventory.write_text("")
    with pytest.raises(DeployError, match="no validation with all checks is kept") as caught:
        validation_before(inventory, LAST)
    assert caught.value.exit_code is ExitCode.BAD_INPUT
    keep(tmp_path / ".deploy", validation())
    assert validation_before(inventory, LAST)["at"] == "1970-01-01T00:16:40+00:00"
    with pytest.raises(DeployError, match="no run is recorded"):
        validation_before(inventory, "20260101")
