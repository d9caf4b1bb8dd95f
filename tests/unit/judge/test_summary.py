import pytest

from deploy.errors import ExitCode
from deploy.judge.summary import Outcome, Phase, SlowTask, Summary, as_preview, summarize
from deploy.run.events import Ending, Event, HostResult, HostStats, Level, Notice, Status
from tests.unit.show.runs import START, WITH_FAILURE, ended, play, result, stats


def _summary(
    *events: Event, hosts: tuple[str, ...] = ("node1", "node2"), is_complete: bool = True
) -> Summary:
    return summarize(events, hosts, started=START, is_complete=is_complete)


def test_a_run_with_a_failure() -> None:
    summary = _summary(*WITH_FAILURE)
    assert (summary.outcome, summary.exit_code) == (Outcome.FAILED, ExitCode.FAILED)
    assert (summary.seconds, summary.changed) == (10.0, 1)
    assert [failure.host for failure in summary.failures] == ["node2"]
    assert summary.phases == (Phase("Base", 1.0), Phase("Compute", 4.0))
    assert summary.slowest == (
        SlowTask("munge : Install", 2.0, "node2"),
        SlowTask("slurmd : Start", 0.1, "node1"),
    )
    node1 = summary.hosts["node1"]
    assert (node1.ok, node1.changed, node1.skipped, node1.seconds, node1.unknown) == (1, 1, 1, 1.1, False)
    assert summary.trouble == ()


@pytest.mark.parametrize(
    ("counts", "outcome", "code"),
    [
        ({"node1": HostStats(ok=1)}, Outcome.CONVERGED, ExitCode.OK),
        ({"node1": HostStats(ok=1, rescued=1, ignored=1)}, Outcome.CONVERGED, ExitCode.OK),
        ({"node1": HostStats(failed=1)}, Outcome.FAILED, ExitCode.FAILED),
        ({"node1": HostStats(unreachable=1)}, Outcome.UNREACHABLE, ExitCode.UNREACHABLE),
        (
            {"node1": HostStats(unreachable=1), "node2": HostStats(failed=1)},
            Outcome.FAILED,
            ExitCode.FAILED,
        ),
    ],
)
def test_outcomes(counts: dict[str, HostStats], outcome: Outcome, code: ExitCode) -> None:
    is_bad = outcome is not Outcome.CONVERGED
    summary = _summary(result("node1"), stats(**counts), ended(rc=2 * is_bad))
    assert (summary.outcome, summary.exit_code) == (outcome, code)


def test_ansibles_own_count_wins_over_a_lost_result() -> None:
    summary = _summary(stats(node1=HostStats(failed=1)), ended(rc=2))
    assert (summary.outcome, summary.hosts["node1"].failed) == (Outcome.FAILED, 1)


def test_hosts_of_an_interrupted_run_are_unknown_save_those_with_a_last_word() -> None:
    events = (
        result("node1", Status.CHANGED),
        result("node2", Status.FAILED),
        result("node3", Status.UNREACHABLE),
    )
    cancelled = ended(rc=99, ending=Ending.CANCELLED)
    summary = _summary(*events, cancelled, hosts=("node1", "node2", "node3", "node4"))
    assert (summary.outcome, summary.exit_code) == (Outcome.INTERRUPTED, ExitCode.INTERRUPTED)
    assert [host.unknown for host in summary.hosts.values()] == [True, False, False, True]
    assert (summary.hosts["node1"].ok, summary.hosts["node1"].changed) == (1, 1)
    assert summary.trouble == ()


def test_a_journal_without_a_last_word_was_interrupted() -> None:
    summary = _summary(result("node1"), is_complete=False)
    assert summary.outcome is Outcome.INTERRUPTED
    assert summary.hosts["node1"].unknown


def test_counting_without_a_recap() -> None:
    ignored = HostResult(START, "node1", "", "", "t", "", Status.FAILED, 0.0, ignored=True)
    away = HostResult(START, "node1", "", "", "t", "", Status.UNREACHABLE, 0.0, ignored=True)
    rescued = HostResult(START, "node1", "", "", "t", "", Status.FAILED, 0.0, rescued=True)
    skipped = result("node1", Status.SKIPPED)
    summary = _summary(ignored, away, rescued, skipped, result("node1"), is_complete=False)
    host = summary.hosts["node1"]
    assert (host.ok, host.ignored, host.rescued, host.skipped, host.failed) == (2, 2, 1, 1, 0)
    assert summary.failures == ()


def test_an_end_before_the_first_task_is_bad_input_in_ansibles_words() -> None:
    said = [Notice(START, Level.OUTPUT, f"line {number}") for number in range(30)]
    summary = _summary(*said, ended(rc=4))
    assert (summary.outcome, summary.exit_code) == (Outcome.FAILED, ExitCode.BAD_INPUT)
    assert summary.trouble == tuple(f"line {number}" for number in range(10, 30))
    assert summary.hosts["node1"].unknown


def test_an_end_in_the_middle_is_a_failure_that_leaves_hosts_unknown() -> None:
    summary = _summary(result("node1"), Notice(START, Level.ERROR, "no such role"), ended(rc=1))
    assert (summary.outcome, summary.exit_code) == (Outcome.FAILED, ExitCode.FAILED)
    assert summary.trouble == ("no such role",)
    assert summary.hosts["node1"].unknown


def test_an_end_without_a_word_is_put_into_words() -> None:
    assert _summary(ended(rc=250)).trouble == ("ansible-playbook was killed by signal 122",)
    assert _summary(ended(rc=1)).trouble == ("ansible-playbook ended with return code 1 and said nothing",)


def test_what_was_said_in_a_complete_run_is_no_trouble() -> None:
    summary = _summary(Notice(START, Level.ERROR, "x"), stats(node1=HostStats(failed=1)), ended(rc=2))
    assert summary.trouble == ()


def test_two_playbooks_add_up() -> None:
    first = (play("Discover"), result("node1"), stats(node1=HostStats(ok=1)), ended())
    second = (play("Base"), result("node1"), stats(node1=HostStats(ok=2, changed=1)), ended())
    summary = _summary(*first, *second)
    assert (summary.hosts["node1"].ok, summary.hosts["node1"].changed) == (3, 1)
    assert summary.outcome is Outcome.CONVERGED


def test_a_failed_first_playbook_is_not_forgotten() -> None:
    summary = _summary(Notice(START, Level.OUTPUT, "why"), ended(rc=1), stats(node1=HostStats(ok=1)), ended())
    assert summary.outcome is Outcome.FAILED
    assert summary.trouble == ("why",)


def test_warnings_once_each() -> None:
    warning = Notice(START, Level.WARNING, "care")
    assert _summary(warning, warning, ended()).warnings == ("care",)


def test_hosts_in_the_order_of_the_plan_then_as_they_come() -> None:
    summary = _summary(result("other"), result("node2"), stats(other=HostStats(), node2=HostStats()), ended())
    assert list(summary.hosts) == ["node1", "node2", "other"]


def test_only_the_slowest_ten() -> None:
    results = [result("node1", task=f"t{number}", seconds=number) for number in range(20)]
    summary = _summary(*results)
    assert [slow.seconds for slow in summary.slowest] == list(range(19, 9, -1))


def test_the_start_is_the_first_event_when_it_is_lost() -> None:
    summary = summarize([play("Base", at=1.0), ended()], ())
    assert (summary.started, summary.seconds) == (START + 1.0, 9.0)
    assert summarize([], ()).seconds == 0.0


def test_what_check_mode_would_change_is_no_change() -> None:
    seen = (result("node1", Status.CHANGED), result("node2", Status.FAILED))
    counted = stats(node1=HostStats(ok=1, changed=1), node2=HostStats(failed=1))
    for events in (seen, (*seen, counted)):
        summary = _summary(*as_preview((*events, ended(rc=2))))
        assert (summary.changed, summary.hosts["node1"].ok, summary.outcome) == (0, 1, Outcome.FAILED)
