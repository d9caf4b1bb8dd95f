"""What is counted of a round is what happened, and nothing that was lost passes for kept."""

from tests.reliability.figures import HEAD, Asked, fates, longest_without, lost_though_saved, table, unsaved


def _asked(*moments: tuple[float, str]) -> list[Asked]:
    return [Asked(number, when - 0.1, when, came) for number, (when, came) in enumerate(moments)]


def test_a_gap_reaches_from_one_success_to_the_next() -> None:
    asked = _asked((1, "1"), (2, ""), (3, ""), (9, "4"), (10, "5"))
    assert longest_without(asked, 0, 10) == 8


def test_nothing_at_all_is_a_gap_of_the_whole_time() -> None:
    assert longest_without(_asked((1, ""), (2, "")), 0, 30) == 30


def test_what_succeeded_before_the_fault_does_not_count() -> None:
    assert longest_without(_asked((1, "1"), (7, "2")), 5, 8) == 2


def test_a_job_that_was_taken_and_never_completed_is_lost() -> None:
    came = fates(["a", "b"], ["a", "b"], ["a"], [("a", "COMPLETED"), ("b", "COMPLETED")])
    assert came.lost == ["b"]
    assert came.missing == []


def test_a_job_whose_submission_nobody_heard_of_may_run_and_needs_its_row() -> None:
    came = fates([], ["a"], ["a"], [])
    assert (came.lost, came.missing) == ([], ["a"])


def test_a_row_that_says_otherwise_is_no_row() -> None:
    assert fates(["a"], ["a"], ["a"], [("a", "NODE_FAIL")]).missing == ["a"]
    assert fates(["a"], ["a", "a"], ["a"], [("a", "NODE_FAIL"), ("a", "COMPLETED")]).missing == []


def test_begun_again_is_not_completed_twice() -> None:
    rows = [("a", "COMPLETED"), ("b", "COMPLETED")]
    came = fates(["a", "b"], ["a", "a", "b", "b"], ["a", "b", "b"], rows)
    assert (came.again, came.twice) == (["a", "b"], ["b"])


def _round(**changes: object) -> dict[str, object]:
    return {
        "submission": 12.4,
        "accounting": 1.2,
        "taken": 40,
        "saved": -1.0,
        "unsaved": [],
        "lost": {},
        "again": [],
        "twice": [],
        "missing": [],
        "usage": {"less": {}},
        "at_once": [],
        "by_hand": [],
        "led": [["ctl1", -9.0, 20.0]],
        **changes,
    }


def test_the_table_adds_rounds_up_and_hides_nothing() -> None:
    bad = _round(
        submission=30.0,
        lost={"a": -0.4, "b": -2.0},
        unsaved=["a"],
        twice=["c"],
        at_once=["ctl1"],
        by_hand=["x"],
        led=[["ctl1", -9.0, 0.1], ["ctl2", 13.5, 40.0], ["ctl1", 41.0, 50.0]],
    )
    (row,) = table({"key": {"what": "a fault", "rounds": [_round(), bad]}})
    assert dict(zip(HEAD, row, strict=True)) == {
        "fault": "`key`: a fault",
        "rounds": "2",
        "s without submission": "21 (12 to 30)",
        "s without accounting": "1 (1 to 1)",
        "s until another one led": "14",
        "jobs taken": "80",
        "lost": "2, taken 0.4 to 2.0 s before it, 1 of them saved",
        "started again": "0",
        "completed twice": "1",
        "rows missing": "0",
        "two wrote at once": "ctl1",
        "by hand": "x",
    }


def test_only_what_had_been_saved_had_to_be_kept() -> None:
    late = unsaved({"a": 95.0, "b": 93.9, "c": 99.0, "d": 101.5}, saved=96.0, caused=101.0)
    assert late == ["a", "c"]
    assert lost_though_saved(_round(unsaved=late, lost={"a": -5.0}, missing=["c"])) == []
    assert lost_though_saved(_round(unsaved=late, lost={"b": -6.1}, missing=["d"])) == ["b", "d"]
    assert lost_though_saved(_round(unsaved=late, usage={"less": {"a": 9.0, "e": 2.0}})) == ["e"]


def test_what_was_not_watched_is_not_called_good() -> None:
    (row,) = table({"key": {"what": "", "rounds": [_round(), _round(at_once=None)]}})
    assert dict(zip(HEAD, row, strict=True))["two wrote at once"] == "not watched"


def test_what_was_lost_and_had_not_been_saved_is_no_more_than_lost() -> None:
    (row,) = table({"key": {"what": "", "rounds": [_round(lost={"a": -0.4}, unsaved=["a"], led=[])]}})
    said = dict(zip(HEAD, row, strict=True))
    assert (said["lost"], said["s until another one led"]) == ("1, taken 0.4 to 0.4 s before it", "-")
