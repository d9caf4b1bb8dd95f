"""Which hosts a run of ``deploy cluster`` may say it converged."""

import pytest

from deploy.engine.options import Options
from deploy.judge.convergence import converged_hosts
from deploy.judge.summary import summarize
from deploy.run.events import HostStats
from tests.unit.show.runs import ended, stats

_SUMMARY = summarize(
    [
        stats(
            ctl1=HostStats(ok=3),
            node1=HostStats(ok=3, changed=1),
            node2=HostStats(ok=1, failed=1),
            node3=HostStats(unreachable=1),
        ),
        ended(rc=2),
    ],
    ["ctl1", "node1", "node2", "node3", "node4"],
)


@pytest.mark.parametrize(
    ("limit", "converged"), [(None, ["ctl1", "node1"]), (frozenset({"node1", "node2"}), ["node1"])]
)
def test_converged_hosts(limit: frozenset[str] | None, converged: list[str]) -> None:
    assert converged_hosts(_SUMMARY, limit) == converged


@pytest.mark.parametrize("options", [Options(check=True), Options(tags="munge"), Options(skip_tags="munge")])
def test_a_part_of_a_phase_converges_nothing(options: Options) -> None:
    assert Options().converges
    assert not options.converges
