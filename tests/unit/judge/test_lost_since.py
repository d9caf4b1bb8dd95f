"""What a backup lacks, by the jobs that nodes run."""

from deploy.judge.lost_since import lost_since

QUEUE = {"running": [3, 4, 5], "waiting": [6, 7], "next_job_id": 8}


def test_jobs_by_what_becomes_of_them() -> None:
    lost = lost_since(QUEUE, {"node1": {3, 6, 12}, "node2": {4, 12}})
    assert lost.unknown == {12: ["node1", "node2"]}
    assert lost.started == {6: ["node1"]}
    assert lost.goes_on == (3, 4)
    assert lost.ended == (5,)
    assert lost.least_job_id == 13
    losses = [*lost.losses()]
    assert "job 12 (node1, node2)" in losses[0]
    assert "job 6 (node1)" in losses[1]
    assert [*lost.notes()] == [
        "jobs of the backup that run on nodes, and go on: 2",
        "ran then and on no node now: 5",
    ]


def test_where_nodes_run_what_the_backup_has_nothing_is_lost() -> None:
    lost = lost_since(QUEUE, {"node1": {3, 4, 5}})
    assert [*lost.losses()] == []
    assert lost.least_job_id == 8


def test_a_backup_that_does_not_know_its_queue_says_so() -> None:
    assert "is not known" in "".join(lost_since({}, {"node1": {3}}).losses())
    assert lost_since({}, {"node1": {3}}).least_job_id == 4
    assert [*lost_since({}, {"node1": set()}).losses()] == []
