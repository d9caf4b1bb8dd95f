import json
from typing import Any

import pytest

from deploy.run.diffs import Diff
from deploy.run.events import (
    Ending,
    Event,
    HostResult,
    HostStats,
    Level,
    Notice,
    PlayStarted,
    RawEvent,
    Retry,
    RunEnded,
    Stats,
    Status,
    TaskStarted,
    from_json,
    parse,
    to_json,
)
from tests.unit.run.raws import AT, raw, result


def _result(raw_event: dict[str, Any]) -> HostResult:
    event = parse(raw_event)
    assert isinstance(event, HostResult)
    return event


def test_plays_and_tasks() -> None:
    assert parse(raw("playbook_on_play_start", name="Base\nsystem")) == PlayStarted(AT, "Base system")
    task = raw(
        "playbook_on_task_start",
        name="munge : Install",
        task="Install",
        role="munge",
        play="P",
        task_path="x:3",
    )
    assert parse(task) == TaskStarted(AT, "P", "munge", "Install", "x:3")
    handler = parse(raw("playbook_on_task_start", task="Restart", is_conditional=True))
    assert isinstance(handler, TaskStarted)
    assert handler.handler


def test_a_result_has_its_place_and_time() -> None:
    assert _result(result()) == HostResult(
        at=AT,
        host="node1",
        play="Base",
        role="munge",
        task="Install",
        path="/roles/munge/tasks/main.yml:3",
        status=Status.OK,
        seconds=1.25,
    )


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (result(), Status.OK),
        (result(res={"changed": True}), Status.CHANGED),
        (result(res={"censored": "hidden"}, deploy_changed=True), Status.CHANGED),
        (result(res={}, deploy_changed=True), Status.CHANGED),
        (result("skipped"), Status.SKIPPED),
        (result("failed", res={"changed": True}, deploy_changed=True), Status.FAILED),
        (result("unreachable"), Status.UNREACHABLE),
    ],
)
def test_status(given: dict[str, Any], status: Status) -> None:
    assert _result(given).status is status


@pytest.mark.parametrize(
    ("given", "trouble", "verdict"),
    [
        (result("failed"), True, "failed"),
        (result("failed", ignore_errors=True), False, "ignored"),
        (result("failed", deploy_rescued=True), False, "rescued"),
        (result("unreachable"), True, "unreachable"),
        (result("unreachable", deploy_ignored=True), False, "ignored"),
        (result("ok"), False, "ok"),
    ],
)
def test_what_the_playbook_handles_itself_is_no_trouble(
    given: dict[str, Any],
    trouble: bool,  # noqa: FBT001
    verdict: str,
) -> None:
    event = _result(given)
    assert (event.is_trouble, event.verdict) == (trouble, verdict)


def test_only_real_differences_are_kept() -> None:
    given = {
        "diff": [
            {"before": "a\n", "after": "b\n", "before_header": "old", "after_header": "new"},
            {"before": "same", "after": "same"},
            {"before": {"mode": "0600"}, "after": {"mode": "0644"}},
            {"prepared": "+line"},
            "nonsense",
        ],
        "results": [{"diff": {"before": "", "after": "item"}}, "nonsense"],
    }
    assert _result(result(res=given)).diff == (
        Diff("a\n", "b\n", "old", "new"),
        Diff('{\n  "mode": "0600"\n}', '{\n  "mode": "0644"\n}'),
        Diff("", "+line"),
        Diff("", "item"),
    )


def test_the_message_of_debug_alone_is_shown() -> None:
    assert _result(result(res={"msg": "ready"})).message == ""
    assert _result(result(res={"msg": "ready", "_ansible_verbose_always": True})).message == "ready"


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        ("verbose", Level.OUTPUT),
        ("warning", Level.WARNING),
        ("system_warning", Level.WARNING),
        ("error", Level.ERROR),
        ("deprecated", Level.DEPRECATED),
    ],
)
def test_what_belongs_to_no_task_is_a_notice(kind: str, level: Level) -> None:
    assert parse(raw(kind, "\x1b[1;35m[WARNING]: care\x1b[0m\r\n")) == Notice(AT, level, "[WARNING]: care")


def test_retries() -> None:
    given = raw("runner_retry", host="node1", task="Wait", role="r", res={"attempts": 2, "retries": 9})
    assert parse(given) == Retry(AT, "node1", "r", "Wait", 2, 9)


def test_stats_name_every_host() -> None:
    given = raw(
        "playbook_on_stats",
        processed={"a": 1, "b": 1},
        ok={"a": 3},
        changed={"a": 1},
        failures={"b": 1},
        dark={},
        skipped=None,
        rescued={"a": 2},
    )
    assert parse(given) == Stats(AT, {"a": HostStats(ok=3, changed=1, rescued=2), "b": HostStats(failed=1)})


@pytest.mark.parametrize(
    "given",
    [
        None,
        "text",
        7,
        [],
        {},
        {"event": None},
        {"event": "news", "stdout": "hi"},
        {"event": "runner_on_ok"},
        {"event": "runner_on_ok", "event_data": []},
        {"event": "runner_on_ok", "event_data": {"host": "a", "duration": "long"}},
        {"event": "runner_on_failed", "event_data": {"host": "a", "res": "no mapping"}},
        {"event": "playbook_on_stats", "event_data": {"processed": {"a": 1}, "ok": {"a": "many"}}},
        {"event": "playbook_on_play_start", "created": "yesterday"},
    ],
)
def test_what_is_unknown_or_malformed_stays_raw(given: object) -> None:
    event = parse(given)
    assert isinstance(event, RawEvent)
    assert from_json(to_json(event)) == event


def test_control_characters_and_halves_of_characters_are_gone() -> None:
    hostile = "a\x1b[31mb\x1b]0;title\x07c\x00d\u202ee\ud83df\r\ng"
    event = _result(result(task=hostile, host=hostile))
    assert event.task == "abcde?f g"
    assert event.host == "abcde?f g"
    assert to_json(event).isascii()


EVENTS: list[Event] = [
    PlayStarted(1.5, "P"),
    TaskStarted(1.5, "P", "r", "t", "x:1", handler=True),
    HostResult(
        1.5, "h", "P", "r", "t", "x:1", Status.FAILED, 0.25, "why\nso", rescued=True, diff=(Diff("a", "b"),)
    ),
    HostResult(1.5, "h", "P", "r", "t", "x:1", Status.OK, 0.25, answer={"cpus": 2, "services": ["munge"]}),
    Retry(1.5, "h", "r", "t", 1, 2),
    Notice(1.5, Level.ERROR, "\u00fc \n"),
    Stats(1.5, {"h": HostStats(ok=1)}),
    RunEnded(1.5, 2, Ending.CANCELLED),
    RawEvent(1.5, "k", "t"),
]


def test_the_answer_of_a_module_is_kept() -> None:
    assert _result(result(res={"deploy_answer": {"cpus": 2}})).answer == {"cpus": 2}
    assert _result(result(res={"deploy_answer": "no mapping"})).answer is None


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_events_survive_the_journal(event: Event) -> None:
    line = to_json(event)
    assert "\n" not in line
    assert from_json(line) == event


@pytest.mark.parametrize(
    "line", ["", "{", "[]", "null", '{"event":"future"}', '{"event":"host_result"}', "7"]
)
def test_a_line_that_cannot_be_read_is_raw(line: str) -> None:
    assert from_json(line) == RawEvent(0.0, "unreadable", line)


def test_fields_of_later_versions_are_ignored() -> None:
    values = json.loads(to_json(EVENTS[0])) | {"later": 1}
    assert from_json(json.dumps(values)) == EVENTS[0]
