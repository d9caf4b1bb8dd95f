"""What Slurm's test suite says is read, and compared with what is known to fail."""

import json

from tests.slurm_testsuite.outcomes import (
    FAILED,
    PASSED,
    SKIPPED,
    Outcome,
    counts,
    of_expect,
    of_pytest,
    surprises,
)

_REPORT = """<?xml version="1.0"?>
<testsuites><testsuite>
<testcase classname="tests.test_101_1" name="test_output"/>
<testcase classname="tests.test_101_2" name="test_pmi[1]"><failure message="1 == 2">x</failure></testcase>
<testcase classname="tests.test_103_1" name="test_a"/>
<testcase classname="tests.test_103_1" name="test_a"><error message="teardown">lines</error></testcase>
<testcase classname="tests.test_104_1" name="test_b"><skipped message="no sudo"/></testcase>
<testcase classname="" name="tests.test_105_1"><skipped message="wants auto-config"/></testcase>
</testsuite></testsuites>"""


def test_a_report_of_pytest_has_each_test_once_with_its_worst_end() -> None:
    assert [(each.name, each.state) for each in of_pytest(_REPORT)] == [
        ("test_101_1::test_output", PASSED),
        ("test_101_2::test_pmi[1]", FAILED),
        ("test_103_1::test_a", FAILED),
        ("test_104_1::test_b", SKIPPED),
        ("test_105_1", SKIPPED),
    ]


def test_a_report_of_expect_is_read() -> None:
    results = [{"id": "1.1", "status": "pass"}, {"id": "1.2", "status": "fail", "reason": "it hung"}]
    assert of_expect(json.dumps({"results": results})) == [
        Outcome("test1.1", PASSED),
        Outcome("test1.2", FAILED, "it hung"),
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
