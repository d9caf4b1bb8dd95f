"""Which hosts a run of ``deploy cluster`` may say it converged."""

from pathlib import Path

import pytest

from deploy.cli.converge import ClusterRun
from deploy.cli.options import Options
from deploy.judge.summary import summarize
from deploy.run.events import HostStats
from deploy.run.execute import EarlyStart
from deploy.site.inventory import Site
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
    ("options", "limit", "converged"),
    [
        (Options(), None, ["ctl1", "node1"]),
        (Options(), frozenset({"node1", "node2"}), ["node1"]),
        (Options(check=True), None, []),
        (Options(tags="munge"), None, []),
        (Options(skip_tags="munge"), None, []),
    ],
)
def test_converged_hosts(
    tmp_path: Path, options: Options, limit: frozenset[str] | None, converged: list[str]
) -> None:
    site = Site(tmp_path / "inventory.ini", {}, {})
    run = ClusterRun(site, options, tmp_path, limit, EarlyStart({}, site.inventory))
    assert run._converged(_SUMMARY) == converged
