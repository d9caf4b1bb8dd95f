from typing import Any

import pytest

from deploy.judge.user_outcome import Change, Verdict, changes, differences, expectation, judge, left_out

COMMAND = {"id": "one", "user": "alice", "run": "sbatch job", "expect": {"sacct": "COMPLETED"}}
ANSWER: dict[str, Any] = {
    "exit": 0,
    "output": "Submitted batch job 7\n",
    "jobs": {"7": "COMPLETED"},
    "files": {"*.out": {"7.out": "first\nsecond\n"}},
    "trouble": "",
    "seconds": 2.04,
}


@pytest.mark.parametrize(
    "expect",
    [
        {},
        {"exit": 0, "output": r"^Submitted batch job \d+$"},
        {"sacct": "COMPLETED"},
        {"files": {"*.out": "^second$"}},
    ],
)
def test_as_expected(expect: dict[str, Any]) -> None:
    assert list(differences(expect, ANSWER)) == []


@pytest.mark.parametrize(
    ("expect", "more", "said"),
    [
        ({}, {"exit": 1}, ["exit code 1, not 0: Submitted batch job 7"]),
        ({"exit": 1}, {}, ["exit code 0, not 1: Submitted batch job 7"]),
        ({"output": "^job"}, {}, ["no ^job in the output: Submitted batch job 7"]),
        ({"output": "x"}, {"output": ""}, ["no x in the output: nothing"]),
        ({"sacct": "COMPLETED"}, {"jobs": {}}, ["no job was submitted"]),
        (
            {"sacct": "COMPLETED"},
            {"jobs": {"7": "COMPLETED", "8": "FAILED"}},
            ["job 8 is FAILED, not COMPLETED"],
        ),
        ({"files": {"*.out": "^third$"}}, {}, ["no ^third$ in 7.out: first | second"]),
        ({"files": {"*.err": "x"}}, {}, ["there is no file *.err"]),
        ({"files": {"*.out": "x"}}, {"files": {"*.out": {}}}, ["there is no file *.out"]),
    ],
)
def test_different(expect: dict[str, Any], more: dict[str, Any], said: list[str]) -> None:
    assert list(differences(expect, {**ANSWER, **more})) == said


def test_every_file_of_a_pattern_counts() -> None:
    files = {"*.out": {"7.out": "good", "8.out": "bad"}}
    assert list(differences({"files": {"*.out": "good"}}, {**ANSWER, "files": files})) == [
        "no good in 8.out: bad"
    ]


def test_long_output_is_shown_by_its_end() -> None:
    (said,) = differences({"output": "x"}, {**ANSWER, "output": "a" * 500 + "z"})
    assert said.endswith("az")
    assert len(said) < 250


def test_trouble_is_all_that_is_told() -> None:
    outcome = judge(COMMAND, {**ANSWER, "exit": None, "trouble": "it had not ended after 180 s"})
    assert (outcome.verdict, outcome.why) == (Verdict.DIFFERENT, ("it had not ended after 180 s",))


def test_an_answer_without_any_result() -> None:
    """What comes when there is no such account."""
    outcome = judge(COMMAND, {"id": "one", "trouble": "there is no account alice"})
    assert outcome.why == ("there is no account alice",)


def test_a_command_for_larger_machines_is_left_out() -> None:
    outcome = judge(COMMAND, {"id": "one", "skipped": "needs 18 cpus"})
    assert (outcome.verdict, outcome.why) == (
        Verdict.LEFT_OUT,
        ("needs 18 cpus, and no partition has that",),
    )


def test_what_was_seen_in_a_few_words() -> None:
    outcome = judge(COMMAND, ANSWER)
    assert (outcome.verdict, outcome.seen, outcome.seconds) == (
        Verdict.AS_EXPECTED,
        "exit 0; 1 job COMPLETED",
        2.0,
    )
    assert outcome.files == {"7.out": "first\nsecond\n"}


def test_what_is_expected_in_a_few_words() -> None:
    expect = {"exit": 1, "output": "no", "sacct": "FAILED", "files": {"a": "b"}}
    assert expectation(expect) == ("exit 1", "output no", "jobs FAILED", "a b")
    assert left_out(COMMAND, "why").expected == ("exit 0", "jobs COMPLETED")


def test_changes_since_another_time() -> None:
    good = {"verdict": "as expected", "exit": 0, "jobs": {"1": "COMPLETED"}, "output": "job 1"}
    later = {**good, "jobs": {"9": "COMPLETED"}, "output": "job 9"}
    bad = {**good, "verdict": "different", "exit": 1, "jobs": {}}
    skipped: dict[str, Any] = {"verdict": "left out", "exit": None, "jobs": {}}
    before: dict[str, dict[str, Any]] = {"same": good, "broken": good, "gone": good, "grown": skipped}
    after: dict[str, dict[str, Any]] = {"same": later, "broken": bad, "new": good, "grown": good}
    assert changes(before, after) == [
        Change("broken", "as expected, exit 0, jobs COMPLETED", "different, exit 1"),
        Change("gone", "as expected, exit 0, jobs COMPLETED", "not there"),
        Change("grown", "left out", "as expected, exit 0, jobs COMPLETED"),
        Change("new", "not there", "as expected, exit 0, jobs COMPLETED"),
    ]
