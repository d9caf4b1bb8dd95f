import json
from pathlib import Path

import pytest

from deploy.validate.baseline import keep_baseline, read_baseline, with_regressions
from deploy.validate.result import Judged, Outcome, failed, passed
from deploy.validate.thresholds import Thresholds


def speed(**seconds: float) -> Judged:
    return Judged("speed", "", tuple(passed("ran", node, value=value) for node, value in seconds.items()))


def test_measurements_are_kept_and_those_of_others_stay(tmp_path: Path) -> None:
    keep_baseline(tmp_path, [speed(node1=0.2, node2=0.3)])
    keep_baseline(tmp_path, [speed(node1=0.25), Judged("job", "", (passed("ran", "node1", value=9.0),))])
    assert read_baseline(tmp_path) == {"speed": {"node1": 0.25, "node2": 0.3}}
    assert [path.name for path in tmp_path.iterdir()] == ["validation.json"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"speed": 1}', '{"speed": {"n": null}}', '{"speed": {"n": []}}', "null"]
)
def test_a_baseline_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    assert read_baseline(tmp_path) == {}
    (tmp_path / "validation.json").write_text(text)
    assert read_baseline(tmp_path) == {}
    keep_baseline(tmp_path, [speed(node1=0.2)])
    assert json.loads((tmp_path / "validation.json").read_text()) == {"speed": {"node1": 0.2}}


def test_what_became_much_slower_failed() -> None:
    baseline = {"speed": {"node1": 0.2, "node2": 0.2, "node3": 0.0}}
    checks = [speed(node1=0.29, node2=0.31, node3=9.0, node4=9.0)]
    (found,) = with_regressions(checks, baseline, Thresholds())
    assert [result.where for result in found.of(Outcome.FAILED)] == ["node2"]
    (result,) = found.of(Outcome.FAILED)
    assert result.message == "ran: 55 % slower than in the last good validation"
    assert ".deploy/validation.json" in result.hint
    (found,) = with_regressions(checks, baseline, Thresholds(regression_percent=60))
    assert found.outcome is Outcome.PASSED


def test_what_failed_already_stays_as_it_is() -> None:
    check = Judged("speed", "", (failed("slow", "node1", value=9.0), passed("no value", "node2")))
    baseline = {"speed": {"node1": 0.2, "node2": 0.2}}
    assert with_regressions([check], baseline, Thresholds()) == (check,)
