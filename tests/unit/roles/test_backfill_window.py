"""How far backfill looks ahead, by the time limits of partitions."""

import pytest

from tests.unit.roles.loading import load_module

window = load_module("roles/slurmctld/filter_plugins/backfill_window.py").backfill_window


@pytest.mark.parametrize(
    ("limits", "minutes"),
    [
        (["30"], 1440),
        (["2-00:00:00", "1-12"], 2880),
        (["48:00:01"], 2881),
        (["90:30"], 1440),
        (["3-1:30"], 4410),
        (["60-0"], 43200),
        (["UNLIMITED", "1-0"], 10080),
        ([None], 10080),
        ([], 10080),
    ],
)
def test_it_reaches_the_longest_limit(limits: list[str | None], minutes: int) -> None:
    partitions = [{"name": "a", **({"max_time": limit} if limit else {})} for limit in limits]
    assert window(partitions) == minutes
