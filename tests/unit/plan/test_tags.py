"""What of a plan is run where tags say so."""

import subprocess
import sys
from pathlib import Path

import pytest

from deploy.content import playbook
from deploy.plan.build import build_plan
from deploy.plan.catalog import PHASES
from deploy.plan.tags import tagged, unknown_tags
from deploy.run.settings import ansible_environment
from deploy.site.inventory import read_site
from tests.unit.site.sites import write_site


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The phases of a small site."""
    plan = build_plan(read_site(write_site(tmp_path_factory.mktemp("site"))))
    return [step.phase.name for step in plan.steps]


def _left(site: Path, tags: str | None, skip_tags: str | None) -> list[str]:
    plan = build_plan(read_site(write_site(site)))
    return [step.phase.name for step in tagged(plan, tags, skip_tags).steps]


@pytest.mark.parametrize(
    ("tags", "skip_tags", "expected"),
    [
        ("slurm_accounts", None, {"associations"}),
        ("mariadb", "slurm", set()),
        ("munge,slurmctld", None, {"packages", "controller"}),
        (None, "slurm,monitoring", None),
        ("all", None, None),
        (None, None, None),
    ],
)
def test_phases_without_a_task_are_left_out(
    tmp_path: Path, names: list[str], tags: str | None, skip_tags: str | None, expected: set[str] | None
) -> None:
    left = _left(tmp_path, tags, skip_tags)
    if expected is not None:
        assert {*left} >= expected
        assert len(left) < len(names) / 2
        assert bool(left) == bool(expected)
    elif skip_tags:
        assert "controller" not in left
        assert "base" in left
    else:
        assert left == names


def test_they_are_those_of_which_ansible_would_run_a_task(tmp_path: Path) -> None:
    """By its own list of the tasks that a tag chooses."""
    (tmp_path / "hosts").write_text("one\n")
    playbooks = str(Path(sys.executable).parent / "ansible-playbook")
    titles = {phase.title: phase for phase in PHASES}
    for tag in ("reboot",):
        listed = subprocess.run(
            [
                playbooks,
                "-i",
                str(tmp_path / "hosts"),
                "--list-tasks",
                "--tags",
                tag,
                str(playbook("cluster")),
            ],
            env=ansible_environment(),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        chosen, title = set(), ""
        for line in listed.splitlines():
            if line.strip().startswith("play #"):
                title = line.split("): ", 1)[1].split("\t")[0]
            elif (
                "TAGS: [" in line
                and tag in line.split("TAGS: [")[1].rstrip("]").split(", ")
                and title in titles
            ):
                chosen.add(titles[title].name)
        plan = build_plan(read_site(write_site(tmp_path)))
        mine = {step.phase.name for step in tagged(plan, tag, None).steps}
        assert mine == chosen & {step.phase.name for step in plan.steps}, tag


def test_a_tag_that_no_task_has_is_known_as_such() -> None:
    assert unknown_tags("slrumctld, munge", "install,nothing") == ["nothing", "slrumctld"]
    assert unknown_tags("always", None, "slurm,service,reboot") == []
