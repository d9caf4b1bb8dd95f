import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from deploy.errors import ExitCode, Finding, Severity
from deploy.judge.convergence import Convergence
from deploy.judge.drift import Drift, HostState, PhaseState
from deploy.judge.last_drill import LastDrill
from deploy.judge.leading import LEADS, SILENT, STANDS_BY, Leading
from deploy.judge.node_status import Clock, NodeStatus, Reach, SlurmNode
from deploy.judge.site_status import JudgedHost, SiteStatus
from deploy.show.status import as_json, lines
from deploy.show.status_table import print_status
from tests.unit.judge.statuses import NOW, service

END = Convergence(NOW - 7200, "1.0", "run1")
SLURMD = service("slurmd", "failed", result="signal")
HOSTILE = "[red]<b>[/] $(id) \u00fc"

DRIFT = tuple(Drift("packages", name, "2", None) for name in ("a", "b", "c"))
SITE = SiteStatus(
    NOW,
    (
        JudgedHost(
            NodeStatus("node2", Reach.UNREACHABLE, "no route", slurm=SlurmNode(("DOWN",), "", "", None)),
            (Finding("node2", "host-unreachable", "no route", "ssh 10.0.0.12"),),
        ),
        JudgedHost(
            NodeStatus(
                "node1",
                Reach.ANSWERED,
                services=(SLURMD,),
                shortfalls=("cpus: x", "gpus: y"),
                clock=Clock(5.0, 5.2),
                slurm=SlurmNode(("IDLE", "DRAIN"), HOSTILE, "root", NOW - 60),
                convergence=END,
                record=HostState((PhaseState("base", is_current=True, drift=DRIFT),)),
            ),
            (
                Finding("node1", "clock-off", "off", "chronyc makestep"),
                Finding("node1", "node-drained", HOSTILE, "scontrol"),
            ),
            (SLURMD,),
        ),
        JudgedHost(
            NodeStatus("old9", Reach.NOT_ASKED, slurm=SlurmNode(("IDLE",), "", "", None)),
            (Finding("old9", "node-not-in-inventory", "unknown", "deploy cluster"),),
        ),
        JudgedHost(
            NodeStatus("new7", Reach.ANSWERED, shortfalls=(), clock=Clock(-0.2, 0.4)),
            (Finding("new7", "never-converged", "never", "deploy cluster", Severity.WARNING),),
        ),
        JudgedHost(
            NodeStatus(
                "ctl1",
                Reach.ANSWERED,
                clock=Clock(-0.001, 0.002),
                convergence=END,
                record=HostState(),
            ),
            (),
            is_node=False,
        ),
    ),
)


CONVERGED = "2 h ago (1970-01-12 11:46 UTC, 1.0)"


def test_plain_lines() -> None:
    assert list(lines(SITE)) == [
        "host               slurm    services   hardware         clock    drift     converged",
        "node2 unreachable  down     -          -                -        -         never",
        f"node1              drained  no slurmd  less cpus, gpus  +5.0 s   3 things  {CONVERGED}",
        "old9               idle     -          -                -        -         not in the inventory",
        "new7               ?        ok         ok               <0.40 s  -         never",
        f"ctl1               -        ok         -                <0.01 s  none      {CONVERGED}",
        "",
        "node2: no route [host-unreachable]",
        "  -> ssh 10.0.0.12",
        "",
        "node1: off [clock-off]",
        "  -> chronyc makestep",
        f"node1: {HOSTILE} [node-drained]",
        "  -> scontrol",
        "",
        "old9: unknown [node-not-in-inventory]",
        "  -> deploy cluster",
        "",
        "new7: warning: never [never-converged]",
        "  -> deploy cluster",
        "",
        "5 hosts: 1 unreachable, 2 with something wrong, 2 well",
    ]


def _printed(status: SiteStatus, width: int, **console: object) -> str:
    out = io.StringIO()
    print_status(Console(file=out, width=width, **console), status)  # type: ignore[arg-type]
    return out.getvalue()


def test_a_terminal_shows_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = _printed(SITE, 120, force_terminal=True, color_system=None)
    assert [line.rstrip() for line in shown.splitlines()] == [line.rstrip() for line in lines(SITE)]


def test_what_is_wrong_is_coloured_and_what_is_well_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = _printed(SITE, 120, force_terminal=True, color_system="standard")
    assert "\x1b[1;31mno slurmd" in shown
    assert "\x1b[33mnever" in shown
    assert "\x1b[2mok" in shown
    monkeypatch.setenv("NO_COLOR", "1")
    shown = _printed(SITE, 120, force_terminal=True, color_system="standard")
    assert "31m" not in shown
    assert "33m" not in shown


def test_a_narrow_terminal_cuts_the_last_column_alone() -> None:
    shown = _printed(SITE, 80, force_terminal=True, color_system=None).splitlines()[:6]
    full = list(lines(SITE))
    assert [line.rstrip() for line in shown] != full[:6]
    assert [line[:70].rstrip() for line in shown] == [line[:70].rstrip() for line in full[:6]]


def test_a_site_that_is_well() -> None:
    well = SiteStatus(NOW, SITE.hosts[-1:])
    assert list(lines(well))[-2:] == ["", "1 host: 1 well"]
    assert well.exit_code == ExitCode.OK


def test_of_several_controllers_it_is_said_who_leads() -> None:
    stands = {"ctl1": SILENT, "ctl2": LEADS, "ctl3": STANDS_BY}
    several = SiteStatus(NOW, SITE.hosts[-1:], Leading(stands, NOW - 200, {}))
    said = ["ctl2 leads, for 3 min at least; ctl1 silent; ctl3 stands by", "1 host: 1 well"]
    assert list(lines(several))[-2:] == said
    assert [line.rstrip() for line in _printed(several, 120).splitlines()][-2:] == said
    assert as_json(several)["controllers"] == {
        "leader": "ctl2",
        "leads_at_least_since": "1970-01-12T13:43:20+00:00",
        "stands": stands,
    }
    nobody = SiteStatus(NOW, SITE.hosts[-1:], Leading(dict.fromkeys(stands, SILENT), None, {}))
    assert list(lines(nobody))[-2].startswith("no controller leads; ctl1 silent; ")
    assert as_json(nobody)["controllers"]["leader"] is None
    assert "controllers" not in as_json(SITE)


def test_json() -> None:
    data = json.loads(json.dumps(as_json(SITE)))
    assert data["at"] == "1970-01-12T13:46:40+00:00"
    assert data["exit_code"] == 1
    node1 = data["hosts"]["node1"]
    assert node1["reach"] == "answered"
    assert node1["services"] == {
        "slurmd": {"load": "loaded", "active": "failed", "result": "signal", "seconds": 180.0}
    }
    assert node1["slurm"] == {
        "state": "drained",
        "flags": ["IDLE", "DRAIN"],
        "reason": HOSTILE,
        "by": "root",
        "since": "1970-01-12T13:45:40+00:00",
    }
    assert node1["clock"] == {"least": 5.0, "most": 5.2, "synchronized": None, "chrony_ahead": None}
    assert node1["converged"] == {"at": "1970-01-12T11:46:40+00:00", "version": "1.0", "run": "run1"}
    assert node1["findings"][0] == {
        "reference": "clock-off",
        "message": "off",
        "hint": "chronyc makestep",
        "severity": "error",
    }
    assert data["hosts"]["node2"]["services"] == {}
    assert data["hosts"]["ctl1"]["slurm"] is None


def _column(record: HostState) -> str:
    host = JudgedHost(NodeStatus("login1", Reach.ANSWERED, convergence=END, record=record), ())
    table = "\n".join(lines(SiteStatus(NOW, (host,))))
    return next(word for word in ("site changed", "unfinished", "none") if word in table)


def test_what_a_run_could_not_end_is_no_change_of_the_site() -> None:
    undone = HostState(unrecorded=("base",), pending={"base": ["account bob: processes of it run"]})
    assert _column(undone) == "unfinished"
    assert _column(HostState(unrecorded=("base", "scratch"), pending=undone.pending)) == "site changed"
    assert _column(HostState()) == "none"
    host = JudgedHost(NodeStatus("login1", Reach.ANSWERED, convergence=END, record=undone), ())
    told = as_json(SiteStatus(NOW, (host,)))["hosts"]["login1"]
    assert told["record"]["pending"] == ["account bob: processes of it run"]


def test_the_last_drill_is_told() -> None:
    drilled = replace(SITE, drill=LastDrill(NOW - 3 * 86400, NOW - 3 * 86400 - 7200, "failed"))
    assert "last drill: failed 3 days ago, with a backup that was 2 h old" in [*lines(drilled)]
    assert as_json(drilled)["last_drill"]["outcome"] == "failed"
    assert as_json(SITE)["last_drill"] is None
