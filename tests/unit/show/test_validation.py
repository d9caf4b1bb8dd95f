import json
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from deploy.errors import ExitCode
from deploy.show.validation import as_junit, lines, since_lines
from deploy.show.validation_page import as_html, bars
from deploy.validate.catalog import Check, judged
from deploy.validate.comparison import compare
from deploy.validate.record import as_data
from deploy.validate.result import Judged, Validation, failed, not_applicable, not_measured, passed
from tests.unit.validate.clusters import Cluster

SCRIPT = "<script>alert(1)</script> & \"'"
SPEED = Judged("speed", "as fast as others", (passed("ran", "n1", value=0.2, unit="s"), passed("ran", "n2")))
GATE = Judged("ssh-gate", "only with a job", (failed(SCRIPT, "n1", hint="type <this>", expected="a gate"),))
BUSY = Judged("gpus", "their own GPUs", (passed("2", "n1"), not_measured("busy", "n2")))
NOTHING = Judged("job", "runs", ())
NONE = Judged("mpi", "all ranks", (not_applicable("the site has no MPI"),))
ONE = Judged("array", "all tasks", (passed("4 tasks"),))


def validation(*checks: Judged) -> Validation:
    return Validation("cluster <1>", 0.0, 65.0, checks)


def test_lines() -> None:
    assert list(lines(validation(ONE, SPEED, GATE, BUSY, NONE))) == [
        "passed          array     all tasks: 4 tasks",
        "passed          speed     as fast as others: 2 of 2",
        "failed          ssh-gate  only with a job: 0 of 1",
        f"                  n1: {SCRIPT} (promised: a gate)",
        "                    -> type <this>",
        "not measured    gpus      their own GPUs: 1 of 2",
        "                  n2: busy",
        "not applicable  mpi       the site has no MPI",
        "",
        "failed: 1 failed, 2 passed, 1 not measured, 1 not applicable, in 1 min 05 s",
    ]
    assert "\033[1;31mfailed        \033[0m  ssh-gate" in "\n".join(lines(validation(GATE), is_colored=True))


def test_what_changed_is_said_the_worst_first() -> None:
    good = Judged("ssh-gate", "only with a job", (passed("a gate", "n1"),))
    earlier = as_data(validation(good, BUSY))
    free = Judged("gpus", "their own GPUs", (not_measured("busy", "n1"), passed("2", "n2")))
    found = compare(earlier, validation(GATE, free, ONE))
    assert [*since_lines(found)] == [
        "since the validation of 1970-01-01T00:00:00+00:00: 2 of 2 results changed",
        f"worse         ssh-gate: n1: {SCRIPT}  (before: a gate)",
        "not measured  gpus: n1: busy  (before: 2)",
    ]
    assert "<td>worse</td><td>ssh-gate</td><td>n1</td><td>&lt;script&gt;" in as_html(validation(GATE), found)


def test_who_could_not_be_asked_is_named_whichever_checks_were_chosen() -> None:
    lost = replace(validation(ONE), unreachable=("n1", "n2"))
    assert lost.exit_code is ExitCode.UNREACHABLE
    assert [*lines(lost)][-1].endswith("; could not be reached: n[1-2]")
    assert replace(lost, checks=(ONE, GATE)).exit_code is ExitCode.FAILED


def test_many_failures_are_not_all_shown() -> None:
    many = Judged("job", "runs", tuple(failed("no", f"n{number}") for number in range(20)))
    assert len([line for line in lines(validation(many)) if line.endswith(": no")]) == 8


@pytest.mark.parametrize(
    ("checks", "word", "code"),
    [
        ((ONE, NONE, BUSY), "passed: 0 failed, 1 passed, 1 not measured, 1 not applicable", ExitCode.OK),
        ((ONE, GATE), "failed: 1 failed, 1 passed", ExitCode.FAILED),
        ((NONE, BUSY), "nothing measured: 0 failed, 0 passed", ExitCode.FAILED),
        (
            (Judged("job", "runs", ()),),
            "nothing measured: 0 failed, 0 passed, 1 not measured",
            ExitCode.FAILED,
        ),
    ],
)
def test_the_verdict(checks: tuple[Judged, ...], word: str, code: ExitCode) -> None:
    found = validation(*checks)
    assert list(lines(found))[-1].startswith(word)
    assert found.exit_code is code


def test_data_for_programs() -> None:
    data = as_data(validation(SPEED, GATE))
    assert json.loads(json.dumps(data)) == data
    assert (data["exit_code"], data["at"], data["seconds"]) == (1, "1970-01-01T00:00:00+00:00", 65.0)
    assert data["checks"][0]["verdicts"][0] == {
        "outcome": "passed",
        "message": "ran",
        "where": "n1",
        "expected": "",
        "hint": "",
        "value": 0.2,
        "unit": "s",
        "is_rate": False,
    }


def test_cases_for_a_ci_server() -> None:
    root = ET.fromstring(as_junit(validation(ONE, SPEED, GATE, BUSY, NONE)))  # noqa: S314 - it is ours
    assert {key: root.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "7",
        "failures": "1",
        "errors": "0",
        "skipped": "2",
    }
    contexts = {(context.get("classname"), context.get("name")): context for context in root}
    wrong = contexts["ssh-gate", "n1"].find("failure")
    assert wrong is not None
    assert (wrong.get("message"), wrong.text) == (SCRIPT, "type <this>")
    skipped = contexts["mpi", "cluster <1>"].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "not applicable: the site has no MPI"


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not {"src", "href", "onclick"} & {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_shows_what_hosts_say_and_does_not_run_it() -> None:
    page = _Tags()
    page.feed(as_html(validation(ONE, SPEED, GATE, BUSY, NONE)))
    assert "script" not in page.tags
    assert page.tags.count("details") == 5
    assert SCRIPT in page.text
    assert "type <this>" in page.text
    assert "cluster <1>" in page.text


def test_bars_are_shares_of_the_largest() -> None:
    check = Judged("speed", "", (passed("", "n1", value=1.0), passed("", "n2", value=4.0), passed("", "n3")))
    assert [(result.where, share) for result, share in bars(check)] == [("n2", 1.0), ("n1", 0.25)]
    assert bars(Judged("speed", "", (passed("", "n1", value=0.0),)))[0][1] == 0.0


def test_what_a_host_says_cannot_move_the_cursor_or_break_xml() -> None:
    def says(_: object) -> list[object]:
        return [failed("\x1b[2Jgone\x00\nnext", "n1", hint="a\x07b")]

    (check,) = judged(Cluster().context(), [Check("odd", "", says)])  # type: ignore[arg-type]
    assert (check.results[0].message, check.results[0].hint) == ("gone next", "ab")
    ET.fromstring(as_junit(validation(check)))  # noqa: S314 - it is ours
