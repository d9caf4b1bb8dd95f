"""Time that a job ran and nobody accounted for is seen, whatever became of its other starts."""

from tests.reliability.usage import USAGE_HEAD, usage_of, usage_table

_COMPLETED, _REQUEUED = "COMPLETED", "REQUEUED"


def test_a_row_is_as_long_as_its_job_but_for_whole_seconds() -> None:
    found = usage_of([("a", 60.5), ("b", 1.5)], [("a", _COMPLETED, 60), ("b", _COMPLETED, 4)], 63)
    assert found == {"ran": 62, "accounted": 64, "less": {}, "beyond": [1.0, 2.5], "fair_share": 63}


def test_a_row_is_shorter_by_whole_seconds_and_a_late_tick() -> None:
    assert usage_of([("a", 1.2)], [("a", _COMPLETED, 0)], 0)["less"] == {}


def test_a_row_that_is_too_short_or_not_there_is_named_with_what_it_lacks() -> None:
    found = usage_of([("a", 60.0), ("b", 5.0)], [("a", _COMPLETED, 52)], 52)
    assert found["less"] == {"a": 8.0, "b": 5.0}


def test_both_runs_of_a_job_that_ran_twice_count_whatever_slurm_calls_them() -> None:
    runs = [("a", 60.0), ("a", 50.0)]
    both = usage_of(runs, [("a", _REQUEUED, 62), ("a", _COMPLETED, 51)], 113)
    assert (both["less"], both["beyond"]) == ({}, None)
    assert usage_of(runs, [("a", _COMPLETED, 51)], 51)["less"] == {"a": 59.0}


def test_a_start_that_came_to_no_end_is_accounted_too() -> None:
    found = usage_of([("a", 60.0)], [("a", "NODE_FAIL", 30), ("a", _COMPLETED, 61)], 91)
    assert (found["accounted"], found["less"], found["beyond"]) == (91, {}, None)


def test_the_table_adds_up_what_is_not_accounted() -> None:
    good = {"ran": 100, "accounted": 110, "less": {}, "beyond": [1.0, 9.0], "fair_share": 110}
    bad = {"ran": 50, "accounted": 40, "less": {"a": 6.0, "b": 8.0}, "beyond": [2.0, 3.0], "fair_share": 30}
    rows = usage_table(
        {
            "key": {"rounds": [{"usage": good}, {"usage": bad}]},
            "none": {"rounds": [{"usage": {**good, "beyond": None}}]},
        }
    )
    first, second = (dict(zip(USAGE_HEAD, row, strict=True)) for row in rows)
    assert first == {
        "fault": "`key`",
        "CPU s that jobs ran which ended": "150",
        "of it not accounted": "14, of 2 jobs",
        "accounted beyond it, s of a job": "2, at most 9",
        "fair share, % beside what is accounted": "-12 (-25 to 0)",
    }
    assert (second["of it not accounted"], second["accounted beyond it, s of a job"]) == ("0", "-")
