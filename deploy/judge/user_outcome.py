"""What came of users' commands against what was expected, and what changed since another time."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

_MOST_SHOWN = 200


class Verdict(StrEnum):
    """How a command came out."""

    AS_EXPECTED = "as expected"
    DIFFERENT = "different"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class Outcome:
    """A command and what came of it.

    ``why`` says what was different, or why it was left out; ``exit`` is None when it did not end. ``jobs``
    has the state of each job in the accounting by number, ``files`` the texts by name, ``seconds`` the time
    to the last of it. ``here`` says what was otherwise than on the site's own machines.
    """

    id: str
    user: str
    run: str
    expected: tuple[str, ...]
    verdict: Verdict
    why: tuple[str, ...] = ()
    exit: int | None = None
    output: str = ""
    jobs: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    here: tuple[str, ...] = ()
    is_too_large: bool = False
    """Whether it was left out because no partition has what it needs."""

    @property
    def seen(self) -> str:
        """Exit code and states of the jobs, in a few words."""
        states = sorted(set(self.jobs.values()))
        number = len(self.jobs)
        jobs = [f"{number} job{'s' * (number != 1)} {', '.join(states)}"] * bool(states)
        return "; ".join([f"exit {self.exit}", *jobs])


def judge(command: Mapping[str, Any], answer: Mapping[str, Any]) -> Outcome:
    """What came of a command, by the answer of deploy/run/user_commands.py."""
    if skipped := answer.get("skipped"):
        return replace(left_out(command, f"{skipped}, and no partition has that"), is_too_large=True)
    found = {name: text for texts in answer.get("files", {}).values() for name, text in texts.items()}
    why = tuple([answer["trouble"]] if answer["trouble"] else differences(command["expect"], answer))
    return Outcome(
        id=command["id"],
        user=command["user"],
        run=_typed(command),
        expected=expectation(command["expect"]),
        verdict=Verdict.DIFFERENT if why else Verdict.AS_EXPECTED,
        why=why,
        exit=answer.get("exit"),
        output=answer.get("output", ""),
        jobs=answer.get("jobs", {}),
        files=found,
        seconds=round(answer.get("seconds", 0.0), 1),
        here=tuple(command.get("here", ())),
    )


def left_out(command: Mapping[str, Any], why: str) -> Outcome:
    """A command that was not typed."""
    return Outcome(
        id=command["id"],
        user=command["user"],
        run=_typed(command),
        expected=expectation(command["expect"]),
        verdict=Verdict.LEFT_OUT,
        why=(why,),
    )


def _typed(command: Mapping[str, Any]) -> str:
    """All that a user types, the answers to prompts too."""
    return "\n".join(text.strip() for text in (command["run"], command.get("input", "")) if text)


def expectation(expect: Mapping[str, Any]) -> tuple[str, ...]:
    """What is expected of a command, each part in a few words."""
    parts = [f"exit {expect.get('exit', 0)}"]
    if "output" in expect:
        parts.append(f"output {expect['output']}")
    if "sacct" in expect:
        parts.append(f"jobs {expect['sacct']}")
    parts += [f"{name} {pattern}" for name, pattern in expect.get("files", {}).items()]
    return tuple(parts)


def differences(expect: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterator[str]:
    """What of an answer is not as expected."""
    wanted = expect.get("exit", 0)
    if answer["exit"] != wanted:
        yield f"exit code {answer['exit']}, not {wanted}: {_end(answer['output'])}"
    if "output" in expect and not _found(expect["output"], answer["output"]):
        yield f"no {expect['output']} in the output: {_end(answer['output'])}"
    if "sacct" in expect:
        if not answer["jobs"]:
            yield "no job was submitted"
        wrong = {job: state for job, state in answer["jobs"].items() if state != expect["sacct"]}
        yield from (f"job {job} is {state}, not {expect['sacct']}" for job, state in wrong.items())
    for name, pattern in expect.get("files", {}).items():
        texts = answer["files"].get(name, {})
        if not texts:
            yield f"there is no file {name}"
        yield from (
            f"no {pattern} in {file}: {_end(text)}"
            for file, text in texts.items()
            if not _found(pattern, text)
        )


def _found(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.MULTILINE) is not None


def _end(text: str) -> str:
    shown = " | ".join(line.strip() for line in text.strip().splitlines() if line.strip())
    return f"…{shown[-_MOST_SHOWN:]}" if len(shown) > _MOST_SHOWN else shown or "nothing"


@dataclass(frozen=True)
class Change:
    """A command that came out in another way than before."""

    id: str
    before: str
    after: str


def changes(before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]) -> list[Change]:
    """What changed between two results, each by id with the keys of an Outcome.

    Compared are the verdict, the exit code and the states of the jobs; texts differ by numbers and times
    each time.
    """
    found = []
    for name in dict.fromkeys([*before, *after]):
        was, now = (_in_short(results.get(name)) for results in (before, after))
        if was != now:
            found.append(Change(name, was, now))
    return found


def _in_short(outcome: Mapping[str, Any] | None) -> str:
    if outcome is None:
        return "not there"
    if outcome["verdict"] == Verdict.LEFT_OUT:
        return str(Verdict.LEFT_OUT)
    states = ", ".join(sorted(set(outcome["jobs"].values())))
    return f"{outcome['verdict']}, exit {outcome['exit']}" + (f", jobs {states}" if states else "")
