"""What the two parts of Slurm's test suite said, compared with the failures that are known. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from xml.etree import ElementTree as ET

PASSED, SKIPPED, FAILED = "passed", "skipped", "failed"
_ENDS = {0: PASSED, 255: SKIPPED}
"""Exit codes of expect tests; those of `timeout` and of signals are others."""
_SAID = r"^\[[^\]]+\] +{}\s+((?:(?!\n\[).)+?) \({}[^)]*\)$"
# What a test says of its end, the weightier first.
_REASONS = [
    re.compile(_SAID.format(level, end), re.MULTILINE | re.DOTALL)
    for level, end in (("Fatal", "fail"), ("Error", "subfail"), ("Warning", "(?:sub)?skip"))
]
# What others on the cluster may have taken away from a test that asked for what is free.
_WANTS_ROOM = re.compile(r"node|partition|able to|distribution|idle|available", re.IGNORECASE)


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
        if not case.get("name"):
            # Of a test that was interrupted; that the file took too long is said by itself.
            continue
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
            return state, _of_module(part.text or "") or part.get("message", "")
    return PASSED, ""


def _of_module(text: str) -> str:
    """Why a module skips itself: it is the last of three in the text, after file and line."""
    found = re.fullmatch(r"\(.*?, \d+, ['\"]Skipped: (.*)['\"]\)", text.strip(), re.DOTALL)
    return found[1] if found else ""


def of_expect(name: str, code: int, log: str) -> Outcome:
    """How an expect test ended."""
    state = _ENDS.get(code, FAILED)
    return Outcome(name, state, "" if state == PASSED else _reason(log) or f"exit code {code}")


def _reason(log: str) -> str:
    said = (pattern.search(log) for pattern in _REASONS)
    return next((" ".join(found[1].split()) for found in said if found), "")


def in_short(reason: str) -> str:
    """A reason without what is in brackets behind it, and without advice."""
    return re.split(r" \(|\.? Use: ", reason)[0].rstrip(".")


def counts(outcomes: Iterable[Outcome]) -> Mapping[str, int]:
    """How many there are of each."""
    states = Counter(outcome.state for outcome in outcomes)
    return {state: states[state] for state in (PASSED, FAILED, SKIPPED)}


def settled(outcomes: Iterable[Outcome], known: Mapping[str, str]) -> bool:
    """Whether tests that ran beside others would end like that alone, too."""
    return all(
        outcome.state == PASSED
        or (outcome.state == FAILED and outcome.name in known)
        or (outcome.state == SKIPPED and not _WANTS_ROOM.search(outcome.said))
        for outcome in outcomes
    )


def surprises(outcomes: Iterable[Outcome], known: Mapping[str, str]) -> Iterator[str]:
    """What is not as the list of known failures has it, one line each."""
    by_name = {outcome.name: outcome for outcome in outcomes}
    for outcome in by_name.values():
        if outcome.state == FAILED and outcome.name not in known:
            first = " ".join(outcome.said.split())[:200]
            yield f"{outcome.name} failed, and is not listed: {first}"
    for name in known:
        state = by_name[name].state if name in by_name else "not run"
        if state != FAILED:
            yield f"{name} is listed as failing, and {'was' if state != 'not run' else 'is'} {state}"
