from dataclasses import replace
from typing import Any

from deploy.judge.preview import preview_of
from deploy.plan.impact import Impact
from deploy.run.events import HostResult, Status
from tests.unit.show.runs import result

RUNNING = {"id": "7", "state": "RUNNING", "user": "alice", "partition": "gpu", "nodes": "node[1-2]"}
PENDING = {"id": "8", "state": "PENDING", "user": "bob", "partition": "gpu,cpu", "nodes": ""}


def asked(*jobs: dict[str, str], configured: bool = True, answers: bool = True) -> HostResult:
    slurm = {"configured": configured, "answers": answers, "jobs": list(jobs)}
    return replace(result("ctl1", task="Ask for jobs"), answer={"slurm": slurm})


def changed(host: str, **impact: Any) -> HostResult:  # noqa: ANN401 - what a module says
    return replace(result(host, Status.CHANGED), impact=impact or None)


def loss(parameter: str = "SlurmdSpoolDir", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"parameter": parameter, "before": "a", "after": "b", "why": "because", "pending": False, **more}


def test_what_does_not_change_is_not_foretold() -> None:
    found = preview_of([asked(), result("node1"), result("node2", Status.SKIPPED)])
    assert found.changes == ()
    assert found.jobs == ()
    assert not found.needs_consent
    assert found.impact is Impact.NONE


def test_a_restart_names_the_jobs_of_its_host() -> None:
    found = preview_of([asked(RUNNING, PENDING), changed("node1", kind="restart", service="slurmd")])
    (change,) = found.changes
    assert (change.impact, change.service) == (Impact.RESTART, "slurmd")
    assert [job.id for job in change.jobs] == ["7"]
    assert not found.needs_consent


def test_a_harmless_change_names_no_jobs() -> None:
    (change,) = preview_of([asked(RUNNING), changed("node1")]).changes
    assert (change.impact, change.jobs) == (Impact.NONE, ())


def test_a_start_disturbs_nothing() -> None:
    (change,) = preview_of([asked(), changed("node1", kind="start", service="munge")]).changes
    assert change.impact is Impact.NONE


def test_what_loses_running_jobs_needs_consent() -> None:
    found = preview_of([asked(RUNNING, PENDING), changed("ctl1", kind="restart", guarded=[loss()])])
    assert found.needs_consent
    assert found.impact is Impact.KILLS_JOBS
    assert [job.id for job in found.losses[0].jobs] == ["7"]


def test_the_queue_that_is_lost_includes_pending_jobs() -> None:
    found = preview_of([asked(PENDING), changed("ctl1", kind="restart", guarded=[loss(pending=True)])])
    assert [job.id for job in found.losses[0].jobs] == ["8"]
    assert found.needs_consent


def test_without_jobs_nothing_is_lost() -> None:
    found = preview_of([asked(PENDING), changed("ctl1", kind="restart", guarded=[loss()])])
    assert not found.needs_consent
    assert found.impact is Impact.RESTART


def test_a_node_that_goes_loses_only_its_own_jobs() -> None:
    on_two, on_nine = (
        preview_of([asked(RUNNING), changed("ctl1", kind="reconfigure", guarded=[loss(nodes=[node])])])
        for node in ("node2", "node9")
    )
    assert on_two.needs_consent
    assert not on_nine.needs_consent


def test_a_node_that_goes_loses_the_jobs_that_wait_for_it_by_name() -> None:
    waits = PENDING | {"required": "node[2-3]"}
    on_two, on_nine, of_other_cores = (
        preview_of(
            [asked(waits, PENDING | {"id": "9"}), changed("ctl1", kind="reconfigure", guarded=[entry])]
        )
        for entry in (
            loss(nodes=["node2"], required=True),
            loss(nodes=["node9"], required=True),
            loss(nodes=["node2"]),
        )
    )
    assert [job.id for job in on_two.losses[0].jobs] == ["8"]
    assert on_two.needs_consent
    assert not on_nine.needs_consent
    assert not of_other_cores.needs_consent


def test_a_partition_that_goes_loses_the_jobs_that_may_run_there() -> None:
    of_cpu, of_none = (
        preview_of(
            [
                asked(RUNNING, PENDING),
                changed("ctl1", kind="reconfigure", guarded=[loss(partition=partition, pending=True)]),
            ]
        )
        for partition in ("cpu", "old")
    )
    assert [job.id for job in of_cpu.losses[0].jobs] == ["8"]
    assert not of_none.needs_consent


def test_a_loss_says_of_which_nodes() -> None:
    found = preview_of(
        [asked(RUNNING), changed("ctl1", kind="restart", guarded=[loss("CPUs", nodes=["node1", "node2"])])]
    )
    assert found.losses[0].parameter == "CPUs of node[1-2]"


def test_an_unknown_queue_is_taken_for_full() -> None:
    dangerous = changed("ctl1", kind="restart", guarded=[loss()])
    for answer in ([asked(answers=False)], []):
        assert preview_of([*answer, dangerous]).needs_consent
        assert not preview_of([*answer, changed("node1", kind="restart")]).needs_consent


def test_a_new_controller_has_no_jobs() -> None:
    found = preview_of([asked(configured=False, answers=False), changed("ctl1", kind="start")])
    assert found.jobs == ()


def test_what_failed_in_the_check_is_said() -> None:
    failed = result("node2", Status.FAILED, message="no disk")
    assert preview_of([asked(), failed]).failures == (failed,)
