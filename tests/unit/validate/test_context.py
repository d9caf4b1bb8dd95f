from dataclasses import replace

import pytest

from deploy.run.events import HostResult, Status
from deploy.validate.answers import JOBS, LOOK, STATE, gathered
from deploy.validate.context import blamed, last_line
from tests.unit.validate.clusters import GROUPS, Cluster, run


@pytest.mark.parametrize(
    ("failures", "guilty"),
    [
        ([], []),
        ([("a", "b")], [("b", ["a"])]),
        ([("a", "b"), ("b", "a")], [("a", ["b"])]),
        ([("a", "a")], [("a", ["a"])]),
        ([("a", "x"), ("b", "x"), ("c", "x")], [("x", ["a", "b", "c"])]),
        ([("x", "a"), ("x", "b"), ("x", "c")], [("x", ["a", "b", "c"])]),
        (
            [("a", "x"), ("b", "x"), ("a", "y"), ("b", "y"), ("c", "x")],
            [("x", ["a", "b", "c"]), ("y", ["a", "b"])],
        ),
        ([("a", "b"), ("c", "d")], [("b", ["a"]), ("d", ["c"])]),
    ],
)
def test_whom_failures_between_pairs_speak_against(
    failures: list[tuple[str, str]], guilty: list[tuple[str, list[str]]]
) -> None:
    assert list(blamed(failures)) == guilty


def test_everybody_against_everybody_is_settled_at_once() -> None:
    names = [f"n{number:05}" for number in range(5000)]
    following = {
        (name, names[(place + step) % len(names)]) for place, name in enumerate(names) for step in range(1, 6)
    }
    found = dict(blamed(following))
    left = {pair for pair in following if not found.keys() & {*pair}}
    assert not left


@pytest.mark.parametrize(
    ("finished", "words"),
    [
        (run(code=None, seconds=60.4), "no end after 60 s"),
        (run(code=1, said="one\n two \n\n"), "two"),
        (run(code=7), "exit code 7"),
    ],
)
def test_why_a_program_failed(finished: dict[str, object], words: str) -> None:
    assert last_line(finished) == words


def test_accounts_are_what_the_host_says_that_makes_them() -> None:
    context = Cluster(groups={**GROUPS, "slurm-database": ("login1",)}).context()
    login1 = context.site.hosts["login1"]
    told = replace(login1, variables={**login1.variables, "slurm_accounts_qos": [{"name": "gold"}]})
    site = replace(context.site, hosts={**context.site.hosts, "login1": told})
    assert replace(context, site=site).accounted("slurm_accounts_qos") == [{"name": "gold"}]


def result(step: str, host: str, status: Status = Status.OK, **more: object) -> HostResult:
    return HostResult(1.0, host, "Validation", "", "A task", "", status, 1.0, step=step, **more)  # type: ignore[arg-type]


def test_answers_by_step_and_host() -> None:
    found = gathered(
        [
            result(STATE, "ctl1", answer={"services": []}),
            result(LOOK, "ctl1", answer={"slurm": {"ping": {"code": 1, "out": "", "why": "no"}}}),
            result(LOOK, "node1", Status.UNREACHABLE, message="No route to host"),
            result(JOBS, "login1", Status.FAILED, message="no answer within 60 s"),
        ]
    )
    assert found.states.keys() == {"ctl1"}
    assert found.looks.keys() == {"ctl1"}
    assert found.jobs is None
    assert found.silent == {(LOOK, "node1"): "No route to host", (JOBS, "login1"): "no answer within 60 s"}
    assert found.told(["ctl2", "ctl1"], "ping") == {"code": 1, "out": "", "why": "no"}
    assert found.told(["ctl2"], "ping") is None
