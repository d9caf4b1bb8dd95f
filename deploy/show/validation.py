"""A validation as lines, and as JUnit's XML for CI servers."""

from collections.abc import Iterable, Iterator
from xml.etree import ElementTree as ET

from deploy.show.text import duration
from deploy.site.node_lists import fold
from deploy.validate.comparison import Comparison
from deploy.validate.record import began_at
from deploy.validate.result import Judged, Outcome, Result, Validation

_SHOWN = 8
_COLORS = {
    Outcome.PASSED: "32",
    Outcome.FAILED: "1;31",
    Outcome.NOT_MEASURED: "33",
    Outcome.NOT_APPLICABLE: "2",
}


def lines(validation: Validation, *, is_colored: bool = False) -> Iterator[str]:
    """A line per check, what is wrong with whom below it, and the result."""
    width = max((len(check.check) for check in validation.checks), default=0)
    kind = max(len(outcome.value) for outcome in Outcome)
    for check in validation.checks:
        word = f"{check.outcome.value:<{kind}}"
        if is_colored:
            word = f"\033[{_COLORS[check.outcome]}m{word}\033[0m"
        yield f"{word}  {check.check:<{width}}  {_summary(check)}".rstrip()
        for result in _worth_showing(check):
            place = f"{result.where}: " if result.where else ""
            expected = f" (promised: {result.expected})" if result.expected else ""
            yield f"{'':{kind}}    {place}{result.message}{expected}"
            if result.hint:
                yield f"{'':{kind}}      -> {result.hint}"
    yield ""
    yield verdict_line(validation)


def verdict_line(validation: Validation) -> str:
    """The whole validation in one line."""
    counts = [
        f"{len(found)} {outcome.value}"
        for outcome in (Outcome.FAILED, Outcome.PASSED, Outcome.NOT_MEASURED, Outcome.NOT_APPLICABLE)
        if (found := validation.ended(outcome)) or outcome in {Outcome.FAILED, Outcome.PASSED}
    ]
    word = (
        "failed"
        if validation.failed
        else "passed"
        if validation.ended(Outcome.PASSED)
        else "nothing measured"
    )
    lost = f"; could not be reached: {fold(validation.unreachable)}" if validation.unreachable else ""
    return f"{word}: {', '.join(counts)}, in {duration(validation.seconds)}{lost}"


def since_lines(comparison: Comparison) -> Iterator[str]:
    """What came out otherwise than in an earlier validation, a line each."""
    count = f"{len(comparison.changes)} of {comparison.compared} results changed"
    yield f"since the validation of {comparison.at}: {count}"
    for change in comparison.changes:
        place = f"{change.check}: {change.where}" if change.where else change.check
        yield f"{change.kind.value:<12}  {place}: {change.now}  (before: {change.before})"


def as_junit(validation: Validation) -> str:
    """A test case per check and host; what was not measured or does not apply is skipped, with the reason."""
    cases = [(check, result) for check in validation.checks for result in check.results]
    root = ET.Element(
        "testsuite",
        name=f"validation of {validation.cluster}",
        tests=str(len(cases)),
        failures=str(_count(cases, Outcome.FAILED)),
        errors="0",
        skipped=str(_count(cases, Outcome.NOT_MEASURED) + _count(cases, Outcome.NOT_APPLICABLE)),
        time=f"{validation.seconds:.1f}",
        timestamp=began_at(validation),
    )
    for check, result in cases:
        case = ET.SubElement(root, "testcase", classname=check.check, name=result.where or validation.cluster)
        if result.outcome is Outcome.FAILED:
            ET.SubElement(case, "failure", message=result.message).text = result.hint
        elif result.outcome is not Outcome.PASSED:
            ET.SubElement(case, "skipped", message=f"{result.outcome.value}: {result.message}")
        else:
            ET.SubElement(case, "system-out").text = result.message
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _count(cases: Iterable[tuple[Judged, Result]], outcome: Outcome) -> int:
    return sum(result.outcome is outcome for _, result in cases)


def _summary(check: Judged) -> str:
    """What a check came to, on its line."""
    good, whole = len(check.of(Outcome.PASSED)), len(check.results)
    if check.outcome is Outcome.PASSED and whole == 1:
        return f"{check.proves}: {check.results[0].message}"
    if check.outcome is Outcome.NOT_APPLICABLE:
        return check.results[0].message
    return f"{check.proves}: {good} of {whole}" if whole else check.proves


def _worth_showing(check: Judged) -> list[Result]:
    """The results that an admin must read: what failed, then what could not be looked at."""
    return [*check.of(Outcome.FAILED), *check.of(Outcome.NOT_MEASURED)][:_SHOWN]
