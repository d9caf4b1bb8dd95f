import pytest

from deploy.run.submissions import Attempt, longest_silence


@pytest.mark.parametrize(
    ("attempts", "seconds"),
    [
        ([], 0),
        ([(0, 0.1, "1"), (1, 0.1, "2")], 0),
        ([(0, 0.1, "1"), (1, 5, "2"), (6, 0.1, "3")], 5),
        ([(0, 0.1, "1"), (1, 2, ""), (3, 2, ""), (5, 1, "2"), (6, 0.1, "3")], 5),
        ([(0, 0.1, "1"), (1, 4, "")], 4),
        ([(0, 2, ""), (2, 1, "1"), (3, 0.1, "2"), (4, 9, "3")], 9),
    ],
)
def test_the_longest_time_without_a_submission(
    attempts: list[tuple[float, float, str]], seconds: float
) -> None:
    assert longest_silence([Attempt(*each) for each in attempts]) == seconds
