"""What a backup lacks, by the jobs that nodes run."""

from deploy.judge.lost_since import lost_since

QUEUE = {"running": [3, 4, 5], "waiting": [6, 7], "next_job_id": 8}


def test_jobs_by_what_becomes_of_them() -> None:
    lost = lost_since(QUEUE, {"node1": {3, 6, 12}, "node2": {4, 12}})
    assert lost.unknown == {12: ["node1", "node2"]}
    assert lost.started == {6: ["node1"]}
    assert lost.goes_on == (3, 4)
    assert lost.again == (5, 7)
    assert lost.least_job_id == 13
    losses = [*lost.losses()]
    assert "job 12 (node1, node2)" in losses[0]
    assert "job 6 (node1)" in losses[1]
    assert "2 jobs ([5,7]); those that ended since run once more" in losses[2]
    assert [*lost.notes()] == ["jobs of the backup that run on nodes, and go on: 2"]


def test_where_nodes_run_what_the_backup_has_nothing_is_lost() -> None:
    lost = lost_since({**QUEUE, "waiting": []}, {"node1": {3, 4, 5}})
    assert [*lost.losses()] == []
    assert lost.least_job_id == 8


def test_a_backup_that_does_not_know_its_queue_says_so() -> None:
    assert "is not known" in "".join(lost_since({}, {"node1": {3}}).losses())
    assert lost_since({}, {"node1": {3}}).least_job_id == 4
    assert [*lost_since({}, {"node1": set()}).losses()] == []


def test_jobs_that_may_have_ended_since_are_a_loss_also_where_nodes_run_nothing() -> None:
    (line,) = lost_since(QUEUE, {"node1": set(), "node2": set()}).losses()
    assert "5 jobs ([3-7])" in line
    (line,) = lost_since({"running": [], "waiting": [10], "next_job_id": 12}, {"node1": set()}).losses()
    assert "1 job (10)" in line


def test_a_job_that_may_be_a_task_of_an_array_is_not_called_a_new_one() -> None:
    queue = {"running": [], "waiting": [10], "arrays": [10], "next_job_id": 11}
    unknown, again = lost_since(queue, {"node1": {15}}).losses()
    assert "submitted after the backup, and not in it" not in unknown
    assert "tasks of the job arrays 10" in unknown
    assert "1 job (10)" in again
