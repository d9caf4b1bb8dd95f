import json
from dataclasses import replace

from deploy.judge.preview import preview_of
from deploy.run.diffs import Diff
from deploy.run.events import Status
from deploy.show.preview import as_json, change_lines, plan_lines, verdict
from tests.unit.judge.test_preview import RUNNING, asked, changed, loss
from tests.unit.show.runs import result


def test_hosts_with_the_same_change_share_its_lines() -> None:
    found = preview_of([asked(), *(result(f"node{number}", Status.CHANGED) for number in (1, 2, 4))])
    (line,) = change_lines(found)
    assert line.split() == ["none", "node[1-2,4]:", "munge", ":", "Install"]


def test_a_difference_is_shown_below_its_change() -> None:
    event = changed("ctl1", kind="reconfigure", service="slurmctld", reasons=["partitionname=batch"])
    diff = Diff("MaxTime=1\n", "MaxTime=2\n", "/etc/slurm/slurm.conf", "/etc/slurm/slurm.conf")
    lines = change_lines(preview_of([asked(RUNNING), replace(event, diff=(diff,))]))
    assert lines[0].startswith("reconfigure slurmctld")
    assert "    because of partitionname=batch" in lines
    assert lines[-2:] == ["    -MaxTime=1", "    +MaxTime=2"]


def test_the_verdict_counts_and_names() -> None:
    found = preview_of([asked(RUNNING), changed("node1", kind="restart", service="slurmd"), changed("node2")])
    text = "plan: 2 changes on node[1-2]; impact: restart slurmd; jobs: 7 (alice) not disturbed"
    assert verdict(found) == text
    assert verdict(preview_of([asked()])) == "plan: nothing to change"
    assert verdict(preview_of([changed("node1")])).endswith("unknown: Slurm does not answer")


def test_what_would_be_lost_is_named_before_a_run() -> None:
    lines = plan_lines(preview_of([asked(RUNNING), changed("ctl1", kind="restart", guarded=[loss()])]))
    assert "LOSES JOBS  SlurmdSpoolDir: a -> b" in lines
    assert "    jobs: 7 (alice)" in lines
    assert lines[-1].endswith("1 would be lost")


def test_harmless_changes_are_only_counted_before_a_run() -> None:
    assert plan_lines(preview_of([asked(), changed("node1")])) == [
        "plan: 1 change on node1; impact: none; no job runs"
    ]


def test_programs_get_the_same() -> None:
    found = preview_of([asked(RUNNING), changed("ctl1", kind="restart", guarded=[loss()])])
    data = json.loads(json.dumps(as_json(found)))
    assert data["changes"][0]["impact"] == "kills jobs"
    assert data["losses"][0]["jobs"] == ["7"]
    assert data["jobs"] == [{"id": "7", "state": "RUNNING", "user": "alice", "nodes": ["node1", "node2"]}]
    assert as_json(preview_of([]))["jobs"] is None
