"""Who leads of several controllers, by what each says of all."""

from typing import Any

from deploy.judge.leading import LEADS, SILENT, STANDS_BY, Leading, leading
from deploy.run.ssh import Unanswered

NAMES = ["ctl1", "ctl2", "ctl3"]
AWAY = "Unable to contact slurm controller (connect failure)"


def view(*stands: str, since: str = "1000") -> dict[str, dict[str, str]]:
    """What one of them says."""
    return {
        name: {"stands": how, "why": AWAY if how == SILENT else "", "since": since if how == LEADS else ""}
        for name, how in zip(NAMES, stands, strict=True)
    }


def found(*views: Any) -> Leading:  # noqa: ANN401 - answers, or none
    made = leading(NAMES, dict(zip(NAMES, views, strict=False)))
    assert made is not None
    return made


def references(made: Leading) -> dict[str, list[str]]:
    return {name: [reference for reference, _, _ in made.troubles(name)] for name in NAMES}


ALL_WELL = view(LEADS, STANDS_BY, STANDS_BY)


def test_all_are_there() -> None:
    made = found(ALL_WELL, ALL_WELL, ALL_WELL)
    assert made.leaders == ["ctl1"]
    assert made.stands == {"ctl1": LEADS, "ctl2": STANDS_BY, "ctl3": STANDS_BY}
    assert made.since == 1000.0
    assert references(made) == {"ctl1": [], "ctl2": [], "ctl3": []}


def test_one_controller_or_no_answer_is_nothing_to_tell() -> None:
    assert leading(["ctl1"], {"ctl1": ALL_WELL}) is None
    assert leading(NAMES, dict.fromkeys(NAMES, Unanswered("No route to host"))) is None
    assert leading(NAMES, {"ctl1": {"trouble": "/etc/slurm/slurm.conf: No such file or directory"}}) is None


def test_a_stand_by_that_does_not_answer_is_named_with_whom() -> None:
    seen = view(LEADS, STANDS_BY, SILENT)
    made = found(seen, seen, Unanswered("timed out"))
    assert made.stands["ctl3"] == SILENT
    ((reference, message, hint),) = made.troubles("ctl3")
    assert reference == "standby-silent"
    assert message == f"its slurmctld does not answer ctl1 and ctl2: {AWAY}"
    assert hint.endswith("(on ctl3)")


def test_a_stand_by_that_gets_no_answer_of_the_leader_is_named() -> None:
    made = found(ALL_WELL, view(SILENT, STANDS_BY, STANDS_BY), ALL_WELL)
    assert made.leaders == ["ctl1"]
    assert [message for _, message, _ in made.troubles("ctl2")] == [
        f"ctl1 leads, and does not answer it: {AWAY}"
    ]
    assert references(made)["ctl3"] == []


def test_two_that_lead_are_worse() -> None:
    made = found(view(LEADS, SILENT, STANDS_BY), view(SILENT, LEADS, STANDS_BY), ALL_WELL)
    assert made.leaders == ["ctl1", "ctl2"]
    assert references(made) == {"ctl1": ["two-lead"], "ctl2": ["two-lead"], "ctl3": []}
