"""What a killed run left is whole, or it is not."""

import pytest

from tests.reliability.halves import forgotten, halves, is_half, unreadable
from tests.reliability.kills import KILL_HEAD, is_kill_fault, kill_table


@pytest.mark.parametrize(
    ("before", "left", "after", "expected"),
    [
        ("a=1\n", "a=1\n", "a=2\n", False),
        ("a=1\n", "a=2\n", "a=2\n", False),
        ("a=1\n", "a=", "a=2\n", True),
        (None, "", "a=2\n", True),
        ("", "", "a=2\n", False),
        (None, "by a package", "a=2\n", False),
    ],
)
def test_a_beginning_of_a_file_is_half_of_it(
    before: str | None, left: str, after: str, *, expected: bool
) -> None:
    assert is_half(before, left, after) is expected


@pytest.mark.parametrize(
    ("path", "content", "is_whole"),
    [
        ("run.json", '{"a": 1}', True),
        ("run.json", '{"a": ', False),
        ("secrets.yml", "a: b\n", True),
        ("secrets.yml", "a: 'b", False),
        ("events.jsonl", '{"a": 1}\n{"b', True),
        ("events.jsonl", '{"a"\n{"b": 1}\n', False),
        ("other.jsonl", '{"a": 1}\n{"b', False),
        ("slurm.conf", "{", True),
    ],
)
def test_files_are_read_as_what_they_are(path: str, content: str, *, is_whole: bool) -> None:
    assert (unreadable(path, content) == "") is is_whole


def test_what_is_not_whole_is_named() -> None:
    after = {"slurm.conf": "a=1\nb=2\n", "kept.json": "{}", "x/.ansible_tmpab": "1"}
    assert dict(halves({}, {"slurm.conf": "a=1\n", "kept.json": "{"}, after)) == {
        "slurm.conf": "4 bytes of 8",
        "kept.json": "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
    }
    assert forgotten({}, after) == ["x/.ansible_tmpab"]
    assert forgotten(after, after) == []


def test_kills_are_counted_by_kind() -> None:
    good = {
        "half": [],
        "locks": [],
        "processes": [],
        "forgotten": [],
        "failed": False,
        "wrong": [],
        "files": 9,
    }
    rounds = [
        {**good, "after": 3.2, "was_over": False, "next": None},
        {**good, "after": 12.0, "was_over": False, "next": 20.4, "half": ["ctl1:/etc/slurm/slurm.conf"]},
        {
            **good,
            "after": 30.0,
            "was_over": True,
            "next": 5.0,
            "failed": True,
            "wrong": ["2 controllers lead"],
        },
    ]
    (row,) = kill_table({"change": {"what": "a change", "rounds": rounds}})
    assert len(row) == len(KILL_HEAD)
    assert row[:6] == ("`change`: a change", "2", "3 to 12", "1", "27", "1")
    assert row[-3:] == ("1", "5 to 20", "2 controllers lead")
    assert [is_kill_fault(one) for one in rounds] == [False, True, True]
