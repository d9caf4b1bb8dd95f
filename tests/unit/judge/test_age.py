import pytest

from deploy.judge.age import age


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-3.0, "0 s"),
        (0.4, "0 s"),
        (119.4, "119 s"),
        (120.0, "2 min"),
        (7199.0, "119 min"),
        (7200.0, "2 h"),
        (172_799.0, "47 h"),
        (172_800.0, "2 days"),
    ],
)
def test_age(seconds: float, said: str) -> None:
    assert age(seconds) == said
