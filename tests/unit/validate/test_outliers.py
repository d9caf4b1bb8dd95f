import pytest

from deploy.validate.outliers import lowest_usual, spread_limit


def test_of_few_nobody_is_odd() -> None:
    assert spread_limit({"a": 1, "b": 9, "c": 1, "d": 1}, 6, 10) is None
    assert lowest_usual({}, 6, 10) is None


def test_what_is_near_the_median_is_usual_however_equal_the_others_are() -> None:
    values = dict(zip("abcde", (100.0, 100.0, 100.0, 100.0, 92.0), strict=True))
    assert lowest_usual(values, 6, 10) == 90


def test_a_wide_spread_makes_room() -> None:
    values = dict(zip("abcde", (80.0, 90.0, 100.0, 110.0, 120.0), strict=True))
    assert lowest_usual(values, 2, 10) == pytest.approx(100 - 2 * 1.4826 * 10)


def test_one_that_is_far_off_does_not_move_the_limit() -> None:
    usual = lowest_usual(dict(zip("abcdef", (100.0, 101.0, 99.0, 100.0, 100.0, 1.0), strict=True)), 6, 10)
    assert usual == 90
