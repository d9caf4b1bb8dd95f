import json
from pathlib import Path

from deploy.judge.last_drill import LastDrill, last_drill


def leave(directory: Path, day: int, text: str) -> None:
    (directory / f"drill-202611{day:02}T030000Z.json").write_text(text)


def report(at: float, outcome: str) -> str:
    return json.dumps({"at": at, "outcome": outcome, "backup": {"made_at": at - 60}})


def test_the_newest_report_that_can_be_read_counts(tmp_path: Path) -> None:
    leave(tmp_path, 1, report(100, "passed"))
    leave(tmp_path, 2, report(200, "failed"))
    leave(tmp_path, 3, '{"at": 300')
    leave(tmp_path, 4, "[]")
    (tmp_path / "drill-20261105T030000Z.txt").write_text("for people")
    assert last_drill(tmp_path) == LastDrill(200, 140, "failed")


def test_no_report_is_nothing_to_say(tmp_path: Path) -> None:
    assert last_drill(tmp_path / "drills") is None
