"""The playbook of a run has the plays of its phases, and no others."""

import json
from pathlib import Path
from typing import Any

import pytest

from deploy.content import playbook, read_data
from deploy.plan.catalog import PHASES
from deploy.plan.generated_playbook import write_playbook

IMPORT = "ansible.builtin.import_playbook"
EVERY_GROUP = {phase.group for phase in PHASES}


def written(place: Path, name: str, groups: set[str]) -> list[dict[str, Any]]:
    plays: list[dict[str, Any]] = json.loads(
        write_playbook(place / "playbook.json", name, groups).read_text("utf-8")
    )
    return plays


def test_plays_of_other_phases_are_left_out(tmp_path: Path) -> None:
    check, *plays = written(tmp_path, "cluster", {"phase_base", "phase_compute"})
    assert check == {"name": "Check", IMPORT: str(playbook("check"))}
    assert [play["hosts"] for play in plays] == ["phase_base", "phase_compute"]
    assert all(play in read_data(playbook("cluster")) for play in plays)


@pytest.mark.parametrize(("name", "after"), [("cluster", []), ("plan", ["jobs"])])
def test_with_every_phase_it_is_the_whole_playbook(tmp_path: Path, name: str, after: list[str]) -> None:
    _, *plays = written(tmp_path, name, EVERY_GROUP)
    of_cluster = read_data(playbook("cluster"))[1:]
    assert plays[: len(of_cluster)] == of_cluster
    assert [play[IMPORT] for play in plays[len(of_cluster) :]] == [str(playbook(name)) for name in after]


def test_what_looks_at_hosts_is_imported_from_where_its_modules_lie(tmp_path: Path) -> None:
    check, jobs = written(tmp_path, "plan", set())
    assert Path(check[IMPORT]).with_name("library").is_dir()
    assert jobs[IMPORT] == str(playbook("jobs"))
