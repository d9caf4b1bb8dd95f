"""What the monitoring says of nodes: whose fault, of which part, and what is not known."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploy.engine import alerts
from deploy.engine.alerts import Alerts, look
from deploy.engine.fit import Fault
from deploy.engine.run import Run
from deploy.run.events import Ending, Event, Status
from deploy.run.execute import Execution, RunRequest
from deploy.site.inventory import read_site
from tests.unit.engine.machines import run_on
from tests.unit.show.runs import ended, result, stats
from tests.unit.site.sites import write_site

WATCHED = "[slurm-master]\nctl1 ansible_host=10.0.0.1\n[slurm-node]\nnode1 ansible_host=10.0.0.2\n"
SITE = f"{WATCHED}[slurm-metric]\n"
GPU = {"alertname": "GpuMemoryErrors", "instance": "node1", "gpu": "3", "repair": "gpu"}


def alert(labels: dict[str, str], summary: str = "it says so", *, fires: bool = True) -> dict[str, Any]:
    return {"labels": labels, "summary": summary, "fires": fires}


def reply(data: Any, code: int | None = 200, why: str = "") -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"code": code, "why": why, "data": data}


def target(instance: str, job: str, health: str = "up") -> dict[str, str]:
    return {"instance": instance, "job": job, "health": health, "error": ""}


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Alerts]:
    """What is read of an answer of the host that watches."""

    def of(answer: dict[str, Any] | None, site: str = WATCHED) -> Alerts:
        def execute(request: RunRequest, on_event: Callable[[Event], None], *_: object) -> Execution:
            assert request.playbook.stem == "validate"
            status = Status.UNREACHABLE if answer is None else Status.OK
            said = replace(result("ctl1", status, message="no route"), step="monitoring", answer=answer)
            for event in (said, stats(), ended(rc=0)):
                on_event(event)
            return Execution(0, Ending.FINISHED)

        monkeypatch.setattr(alerts, "execute", execute)
        made: Run = run_on(read_site(write_site(tmp_path, site)), place=tmp_path)
        return look(made)

    return of


def test_each_alert_is_a_fault_of_its_node(asked: Callable[..., Alerts]) -> None:
    mount = {
        "alertname": "FilesystemReadOnly",
        "instance": "node2",
        "mountpoint": "/scratch",
        "repair": "mount",
    }
    own = {"alertname": "Odd", "instance": "ctl1", "node": "node3", "repair": "whatever"}
    data = [alert(GPU), alert(mount), alert(own, ""), alert({**GPU, "gpu": "4"}, fires=False)]
    found = asked({"url": "x", "alerts": reply(data), "targets": reply([target("node2", "gpu", "down")])})
    assert found.firing == {
        "node1": (Fault("gpu", "3", "alert GpuMemoryErrors: it says so", "GpuMemoryErrors"),),
        "node2": (
            Fault("read-only", "/scratch", "alert FilesystemReadOnly: it says so", "FilesystemReadOnly"),
        ),
        "node3": (Fault("hardware", "", "alert Odd", "Odd"),),
    }
    assert [fault.subject for fault in found.pending["node1"]] == ["4"]
    assert found.against("node9", ["GpuMissing"]) == ""
    assert found.against("node3", ["Odd"]) == "alert Odd"
    quiet = Alerts(silent=found.silent)
    assert quiet.against("node2", ["A", "B"]) == (
        "it is not known whether A and B still fires: Prometheus gets no answer from its gpu exporter"
    )


@pytest.mark.parametrize(
    ("answer", "site", "why"),
    [
        (None, SITE, "slurm-metric has no host"),
        (None, WATCHED, "ctl1 does not answer: no route"),
        (
            {"url": "u", "alerts": reply(None, None, "refused"), "targets": reply([])},
            WATCHED,
            "at u: refused",
        ),
        ({"url": "u", "alerts": reply([]), "targets": reply(None, 200, "odd")}, WATCHED, "at u: odd"),
    ],
)
def test_silence_is_said_and_is_no_health(
    asked: Callable[..., Alerts], answer: dict[str, Any] | None, site: str, why: str
) -> None:
    found = asked(answer, site)
    assert why in found.why
    assert found.firing == {}
    assert why in found.against("node1", ["GpuMissing"])
