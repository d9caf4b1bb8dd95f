"""What the two parts of Slurm's test suite said, compared with the failures that are known. Pure."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.etree import ElementTree as ET

PASSED, SKIPPED, FAILED = "passed", "skipped", "failed"
_EXPECT = {"pass": PASSED, "skip": SKIPPED, "fail": FAILED}


@dataclass(frozen=True)
class Outcome:
    """How one test ended, and what it said of it."""

    name: str
    state: str
    said: str = ""


def of_pytest(report: str) -> list[Outcome]:
    """The tests in a report that pytest wrote as JUnit's XML; those of a module that fell are one."""
    found: dict[str, Outcome] = {}
    for case in ET.fromstring(report).iter("testcase"):  # noqa: S314 - of a machine of this lab
        module = case.get("classname", "").rpartition(".")[2] or case.get("name", "").rpartition(".")[2]
        name = f"{module}::{case.get('name')}" if case.get("classname") else module
        outcome = Outcome(name, *_state(case))
        # A test that passes can fail when it ends: pytest then has it twice.
        if name not in found or found[name].state != FAILED:
            found[name] = outcome
    return list(found.values())


def _state(case: ET.Element) -> tuple[str, str]:
    for tag, state in (("failure", FAILED), ("error", FAILED), ("skipped", SKIPPED)):
        part = case.find(tag)
        if part is not None:
            return state, part.get("message", "")
    return PASSED, ""


def of_expect(report: str) -> list[Outcome]:
    """The tests in a report that regression.py wrote."""
    results = json.loads(report)
    tests = results if isinstance(results, list) else results["results"]
    return [Outcome(f"test{test['id']}", _EXPECT[test["status"]], test.get("reason", "")) for test in tests]


def counts(outcomes: list[Outcome]) -> Mapping[str, int]:
    """How many there are of each."""
    return {state: sum(outcome.state == state for outcome in outcomes) for state in (PASSED, SKIPPED, FAILED)}


def surprises(outcomes: list[Outcome], known: Mapping[str, str]) -> Iterator[str]:
    """What is not as the list of known failures has it, one line each."""
    by_name = {outcome.name: outcome for outcome in outcomes}
    for outcome in outcomes:
        if outcome.state == FAILED and outcome.name not in known:
            first = " ".join(outcome.said.split())[:200]
            yield f"{outcome.name} failed, and is not listed: {first}"
    for name in known:
        state = by_name[name].state if name in by_name else "not run"
        if state != FAILED:
            yield f"{name} is listed as failing, and {'was' if state != 'not run' else 'is'} {state}"
