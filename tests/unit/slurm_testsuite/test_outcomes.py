"""What Slurm's test suite says is read, and compared with what is known to fail."""

import pytest

from tests.slurm_testsuite.outcomes import (
    FAILED,
    PASSED,
    SKIPPED,
    Outcome,
    counts,
    in_short,
    of_expect,
    of_pytest,
    settled,
    surprises,
)

_REPORT = """<?xml version="1.0"?>
<testsuites><testsuite>
<testcase classname="tests.test_101_1" name="test_output"/>
<testcase classname="tests.test_101_2" name="test_pmi[1]"><failure message="1 == 2">x</failure></testcase>
<testcase classname="tests.test_103_1" name="test_a"/>
<testcase classname="tests.test_103_1" name="test_a"><error message="teardown">lines</error></testcase>
<testcase classname="tests.test_104_1" name="test_b"><skipped message="no sudo"/></testcase>
<testcase classname="" name="tests.test_105_1"><skipped message="collection skipped">\
('/home/slurm-testsuite/testsuite/python/tests/test_105_1.py', 12, 'Skipped: wants auto-config')\
</skipped></testcase>
<testcase time="9.5"/>
</testsuite></testsuites>"""
_BAR = "=" * 78
_LOG = f"""{_BAR}
TEST:    test1.2
{_BAR}
[2026-11-27 09:00:00.001] Debug   Invoking (fail message) (run_command@globals:1063,test1.2:30)
[2026-11-27 09:00:00.002] Warning It is only a warning (run_command@globals:1100,test1.2:31)
"""


def test_a_report_of_pytest_has_each_test_once_with_its_worst_end() -> None:
    assert [(each.name, each.state, each.said) for each in of_pytest(_REPORT)] == [
        ("test_101_1::test_output", PASSED, ""),
        ("test_101_2::test_pmi[1]", FAILED, "1 == 2"),
        ("test_103_1::test_a", FAILED, "teardown"),
        ("test_104_1::test_b", SKIPPED, "no sudo"),
        ("test_105_1", SKIPPED, "wants auto-config"),
    ]


@pytest.mark.parametrize(
    ("code", "line", "outcome"),
    [
        (0, "", Outcome("test1.2", PASSED)),
        (
            255,
            "[2026-11-27 09:00:01.000] Warning You must be root (skip@globals:470,test1.2:40)",
            Outcome("test1.2", SKIPPED, "You must be root"),
        ),
        (
            255,
            "[2026-11-27 09:00:01.000] Warning No GPU (subskip@globals:650,test1.2:40)",
            Outcome("test1.2", SKIPPED, "No GPU"),
        ),
        (
            1,
            """[2026-11-27 09:00:01.000] Error   First (subfail@globals:600,test1.2:40)
[2026-11-27 09:00:02.000] Fatal   It said
nothing (fail@globals:440,test1.2:50)""",
            Outcome("test1.2", FAILED, "It said nothing"),
        ),
        # Killed: neither the test nor the suite said that it was skipped.
        (137, "", Outcome("test1.2", FAILED, "exit code 137")),
    ],
    ids=["passed", "skipped", "a part skipped", "failed", "killed"],
)
def test_an_expect_test_ends_as_its_exit_code_says_for_the_reason_in_its_output(
    code: int, line: str, outcome: Outcome
) -> None:
    assert of_expect("test1.2", code, f"{_LOG}{line}\n{_BAR}\n") == outcome


@pytest.mark.parametrize(
    ("outcome", "settles"),
    [
        (Outcome("a", PASSED), True),
        (Outcome("a", FAILED, "it hung"), False),
        (Outcome("known", FAILED, "it hung"), True),
        (Outcome("a", SKIPPED, "You must be root"), True),
        (Outcome("a", SKIPPED, "Insufficient nodes in default partition (1 < 3)"), False),
    ],
)
def test_what_others_may_have_disturbed_is_not_settled(outcome: Outcome, *, settles: bool) -> None:
    assert settled([Outcome("b", PASSED), outcome], {"known": "why"}) is settles


def test_reasons_are_the_same_whatever_each_test_adds() -> None:
    reasons = [
        "This test requires auto-config to be enabled (wants to set the Prolog)",
        "It needs an administrator. Use: sacctmgr mod user $USER set admin=admin.",
        "It needs an administrator.",
    ]
    assert [*map(in_short, reasons)] == [
        "This test requires auto-config to be enabled",
        "It needs an administrator",
        "It needs an administrator",
    ]


def test_what_is_not_listed_and_what_is_listed_in_vain_are_said() -> None:
    outcomes = [
        Outcome("a", FAILED, "as known"),
        Outcome("b", FAILED, "first line\nsecond"),
        Outcome("c", PASSED),
        Outcome("d", SKIPPED),
    ]
    assert [*surprises(outcomes, {"a": "why", "c": "why", "d": "why", "e": "why"})] == [
        "b failed, and is not listed: first line second",
        "c is listed as failing, and was passed",
        "d is listed as failing, and was skipped",
        "e is listed as failing, and is not run",
    ]
    assert counts(outcomes) == {PASSED: 1, SKIPPED: 1, FAILED: 2}
    assert [*surprises(outcomes[:1], {"a": "why"})] == []
