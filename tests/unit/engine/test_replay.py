"""What a replay asks of the controller, and what it says where there is no answer."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deploy.engine import replay as module
from deploy.engine.options import Options
from deploy.errors import DeployError, ExitCode
from deploy.run.events import Ending, Event, HostResult, RunEnded, Status
from deploy.run.execute import Execution, RunRequest
from deploy.run.replay import AT_WORK
from tests.unit.site.sites import write_site

SITE = (
    "[slurm-master]\nctl1 ansible_host=10.0.0.1\n[slurm-node]\nnode1 ansible_host=10.0.0.2\n"
    "[slurm-node:vars]\nslurmd_hardware={'cpus': 4, 'memory_mb': 1024}\n"
)
SHAPE = {
    "user": "alice",
    "account": "vision",
    "partition": "batch",
    "qos": "normal",
    "minutes": 5,
    "nodes": 1,
    "cpus": 1,
    "memory_mb": 0,
    "gres": {},
    "licenses": {},
    "constraint": "",
    "tasks": 0,
    "jobs": 4,
}
JOBS = {"shapes": [SHAPE], "gone": {}, "unread": 0, "in_reservations": 0}
VERDICTS = {"old": [["accepted", ""]], "new": [["refused", "no"]], "seconds": 2}


def result(step: str, answer: dict[str, Any] | None, status: Status = Status.OK) -> HostResult:
    return HostResult(
        0.0, "ctl1", "Replay", "", f"task {step}", "", status, 0.0, "why", answer=answer, step=step
    )


@pytest.fixture
def came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """What a replay comes to where the playbook's tasks end so."""

    def replay(*results: HostResult, site: str = SITE) -> Any:  # noqa: ANN401 - as the verb returns
        def execute(request: RunRequest, tell: Callable[[Event], None], *_: object) -> Execution:
            source = json.loads(request.inventories[1].read_text())["all"]["children"]["replay"]
            assert source["hosts"] == {"ctl1": None}
            assert source["vars"]["replay_days"] == 30
            for each in results:
                tell(each)
            tell(RunEnded(0.0, 0, Ending.FINISHED))
            return Execution(0, Ending.FINISHED)

        monkeypatch.setattr(module, "execute", execute)
        return module.replay(write_site(tmp_path, site), Options(plain_ansible=True), 30)

    return replay


def test_verdicts_are_compared(came: Callable[..., Any]) -> None:
    found = came(result("jobs", JOBS), result("verdicts", VERDICTS))
    assert [(change.why, change.jobs) for change in found.refused] == [("no", 4)]
    assert found.exit_code is ExitCode.CHANGES_PENDING


def test_a_month_without_jobs_is_no_failure(came: Callable[..., Any]) -> None:
    found = came(result("jobs", JOBS | {"shapes": []}))
    assert (found.jobs, found.exit_code) == (0, ExitCode.OK)


@pytest.mark.parametrize(
    ("results", "reference", "code"),
    [
        ([result("jobs", {"trouble": "Connection refused"})], "replay-no-jobs", ExitCode.FAILED),
        ([result("jobs", None, Status.UNREACHABLE)], "host-silent", ExitCode.UNREACHABLE),
        ([result("jobs", JOBS), result("", None, Status.FAILED)], "replay-failed", ExitCode.FAILED),
        ([result("jobs", JOBS), result("verdicts", {"trouble": "fatal"})], "replay-failed", ExitCode.FAILED),
        ([result("jobs", JOBS), result("verdicts", {"trouble": AT_WORK})], "replay-at-work", ExitCode.FAILED),
    ],
)
def test_what_goes_wrong_has_a_reference(
    came: Callable[..., Any], results: list[HostResult], reference: str, code: ExitCode
) -> None:
    with pytest.raises(DeployError) as problem:
        came(*results)
    assert [finding.reference for finding in problem.value.findings] == [reference]
    assert problem.value.exit_code is code


def test_a_cluster_without_munge_is_refused(came: Callable[..., Any]) -> None:
    with pytest.raises(DeployError, match="replay-without-munge") as problem:
        came(site=SITE + "[all:vars]\nslurm_auth_type=auth/slurm\n")
    assert problem.value.exit_code is ExitCode.BAD_INPUT


def test_a_database_on_a_host_of_its_own_is_refused(came: Callable[..., Any]) -> None:
    apart = SITE + "[slurm-database]\ndb1 ansible_host=10.0.0.9\n"
    with pytest.raises(DeployError, match="replay-apart") as problem:
        came(site=apart)
    assert problem.value.exit_code is ExitCode.BAD_INPUT
