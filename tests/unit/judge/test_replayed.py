"""Only what goes otherwise is told: never jobs that were refused before as well."""

from typing import Any

from deploy.errors import ExitCode
from deploy.judge.replayed import Replayed, replayed
from deploy.show.replay import as_json, lines

SHAPE: dict[str, Any] = {
    "user": "alice",
    "account": "vision",
    "partition": "gpu",
    "qos": "normal",
    "minutes": 2880,
    "nodes": 2,
    "cpus": 32,
    "memory_mb": 2048,
    "gres": {"gpu:a100": 8},
    "licenses": {},
    "constraint": "",
    "command": "sbatch",
    "tasks": 0,
    "highest_task": 0,
    "jobs": 10,
}
TAKEN, NO, LATER = ["accepted", ""], ["refused", "no such partition"], ["waits", "time limit exceeds 60"]


def came(*verdicts: tuple[dict[str, Any], list[str], list[str]], **more: object) -> Replayed:
    gathered = {"shapes": [SHAPE | said for said, _, _ in verdicts], "gone": {}, "unread": 0}
    answer = {"old": [old for _, old, _ in verdicts], "new": [new for _, _, new in verdicts]}
    return replayed(30, gathered | {"in_reservations": 0} | more, answer)


def test_only_what_differs_is_told() -> None:
    found = came(({}, TAKEN, TAKEN), ({"nodes": 3}, NO, NO), ({"nodes": 4}, LATER, NO))
    assert (found.refused, found.accepted, found.never, found.exit_code) == ((), (), 20, ExitCode.OK)
    assert [*lines(found)] == [
        "accepted neither now nor then: 20 jobs",
        "replay: nothing would change for 30 jobs of the last 30 days (3 different requests)",
    ]


def test_the_same_request_of_several_users_is_one_line_with_its_reason() -> None:
    found = came(({}, TAKEN, NO), ({"user": "bob", "account": "nlp", "jobs": 3}, TAKEN, NO))
    assert found.exit_code is ExitCode.CHANGES_PENDING
    title, head, row, *_ = lines(found)
    assert title == "would be refused: 13 jobs: no such partition"
    assert head.split() == ["jobs", "what", "they", "ask", "for", "users", "accounts"]
    assert row.split("  ")[2:] == [
        "13",
        "gpu/normal: 2 nodes, 32 CPUs, 2 GiB, 8 a100, for 2-00:00:00",
        "alice 10, bob 3",
        "vision 10, nlp 3",
    ]


def test_jobs_that_would_wait_for_ever_are_no_refusals() -> None:
    text = "\n".join(lines(came(({}, TAKEN, LATER), ({"nodes": 3}, TAKEN, NO), ({"nodes": 4}, NO, TAKEN))))
    assert "would be accepted, and wait for ever: 10 jobs: time limit exceeds 60" in text
    assert "would be accepted, and are refused or wait for ever now: 10 jobs: no such partition" in text
    assert text.endswith("10 would be refused, 10 would wait for ever, 10 would be accepted that are not now")


def test_what_was_not_tried_is_said() -> None:
    text = "\n".join(lines(came(gone={"carol": 7}, unread=2, in_reservations=1)))
    assert "not tried: 7 jobs of users whom the controller does not know: carol 7" in text
    assert "not tried: 2 jobs of which accounting does not know what they asked for" in text
    assert "tried without their reservation: 1 job" in text
    assert text.endswith("replay: there are no jobs of the last 30 days that could be tried")


def test_programs_get_everything() -> None:
    data = as_json(came(({}, TAKEN, NO)))
    (row,) = data["refused"]
    assert (row["jobs"], row["users"], row["request"]["gres"]) == (10, {"alice": 10}, {"gpu:a100": 8})
