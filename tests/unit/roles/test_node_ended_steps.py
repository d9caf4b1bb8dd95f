"""A node that Slurm drained for steps which had ended goes on; not so for a step that cannot be killed."""

from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.roles.loading import load_health

TELLS = (
    "[{at}.798] [{step}] error: Rank 0 failed sending step completion message directly to slurmctld,"
    " retrying\n"
)
RETRIES = "[{at}.021] [{step}] Retrying job complete RPC for StepId={step} [sleeping 15s]\n"
GIVES_UP = (
    "[{at}.000] [{step}] error: *** EXTERN STEP FOR 1352 STEPD TERMINATED ON node1 AT {at}"
    " DUE TO JOB NOT ENDING WITH SIGNALS ***\n"
)


@pytest.fixture(scope="module")
def module() -> Any:  # noqa: ANN401 - a module that is loaded by its path
    return load_health("ended_steps")


class Node:
    """A node that is drained, and the log of its steps, in seconds from then."""

    def __init__(self, module: Any, monkeypatch: pytest.MonkeyPatch, place: Path) -> None:  # noqa: ANN401
        self.module, self.log = module, place / "slurmd.log"
        self.drained = datetime.fromisoformat("2026-11-29T11:09:40")
        self.state = f"State=IDLE+DRAIN Reason=Kill task failed [root@{self.drained.isoformat()}]"
        self.told: list[str] = []
        monkeypatch.setattr(module.read_node.__globals__["subprocess"], "run", self._run)

    def _run(self, command: list[str], **_: object) -> Any:  # noqa: ANN401
        if command[2:4] == ["show", "node"]:
            return SimpleNamespace(returncode=0, stdout=f"NodeName=node1 Arch=x86_64 {self.state}\n")
        self.told.append(" ".join(command[1:]))
        return SimpleNamespace(returncode=0, stdout="")

    def says(self, line: str, seconds: float = -31, step: str = "1352.extern") -> None:
        at = (self.drained + timedelta(seconds=seconds)).isoformat()
        with self.log.open("a") as log:
            log.write(line.format(at=at, step=step))

    def look(self) -> str:
        return str(self.module.take_back("node1", self.log))


@pytest.fixture
def node(module: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Node:  # noqa: ANN401
    return Node(module, monkeypatch, tmp_path)


@pytest.mark.parametrize(
    ("line", "step"), [(TELLS, "1352.extern"), (TELLS, "1352.0"), (RETRIES, "1352.batch")]
)
def test_a_node_whose_step_had_ended_goes_on(node: Node, line: str, step: str) -> None:
    node.says(line, -82, step)
    node.says(GIVES_UP, step=step)
    assert (
        node.look()
        == 'resumed: Slurm drained it for "Kill task failed", and the step that it gave up had ended'
    )
    assert node.told == ["update NodeName=node1 State=RESUME"]


def _is_left(node: Node) -> bool:
    return node.look() == "" and node.told == []


def test_one_that_cannot_be_killed_keeps_its_node_drained(node: Node) -> None:
    node.says(GIVES_UP)
    node.says(TELLS, -30)  # as it then does
    assert _is_left(node)


def test_one_of_two_that_cannot_be_killed_is_enough(node: Node) -> None:
    node.says(TELLS, -82)
    node.says(GIVES_UP)
    node.says(GIVES_UP, step="1353.extern")
    assert _is_left(node)


def test_one_that_is_given_up_later_is_enough(node: Node) -> None:
    """Slurm keeps the reason that it gave first."""
    node.says(TELLS, -82)
    node.says(GIVES_UP)
    node.says(GIVES_UP, 60, "1353.extern")
    assert _is_left(node)


@pytest.mark.parametrize("reason", ["Kill task failed : disk", "disk", "Prolog error"])
def test_other_reasons_stay(node: Node, reason: str) -> None:
    node.state = node.state.replace("Kill task failed", reason)
    node.says(TELLS, -82)
    node.says(GIVES_UP)
    assert _is_left(node)


@pytest.mark.parametrize("seconds", [-3000, 60])
def test_what_was_given_up_at_another_time_is_no_cause(node: Node, seconds: int) -> None:
    node.says(TELLS, -3100)
    node.says(GIVES_UP, seconds)
    assert _is_left(node)


def test_a_node_in_service_and_one_without_a_log_are_left(node: Node) -> None:
    assert _is_left(node)
    node.state = "State=IDLE Reason=Kill task failed [root@2026-11-29T11:09:40]"
    node.says(TELLS, -82)
    node.says(GIVES_UP)
    assert _is_left(node)
