"""What the monitoring says of nodes that are to be repaired: alerts with the label ``repair``."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from deploy.engine.fit import Fault
from deploy.engine.run import Run
from deploy.engine.validation import monitoring_secrets
from deploy.errors import DeployError
from deploy.run.cancellation import signals_cancel
from deploy.run.events import Event
from deploy.run.execute import execute
from deploy.run.message import one_line
from deploy.site.hardware import read_contract
from deploy.validate.answers import MONITORING, gathered
from deploy.validate.questions import write_repair_question

_NODE = "node"
PARTS = {
    _NODE: ("hardware", ""),
    "gpu": ("gpu", "gpu"),
    "mount": ("read-only", "mountpoint"),
    "vendor": ("vendor", ""),
}
"""By what the label ``repair`` says, the kind of the fault and the label that names the part.

Alerts of deploy's own say one of these in their declarations (``deploy/monitoring/alert.py``); what a site's
own say beyond them is the node.
"""
_OK = 200
_UP = "up"


@dataclass(frozen=True)
class Alerts:
    """By node what fires, what is about to, and which of its exporters do not answer.

    ``why`` says why nothing is known; empty where it is.
    """

    firing: Mapping[str, tuple[Fault, ...]] = field(default_factory=dict)
    pending: Mapping[str, tuple[Fault, ...]] = field(default_factory=dict)
    silent: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    why: str = ""

    def against(self, node: str, names: Collection[str]) -> str:
        """Why a node that was taken for alerts of those names cannot be called well; empty where it can."""
        loud = (*self.firing.get(node, ()), *self.pending.get(node, ()))
        if loud:
            return "; ".join(fault.words for fault in loud)
        silent = ", ".join(self.silent.get(node, ()))
        why = self.why or (f"Prometheus gets no answer from its {silent} exporter" if silent else "")
        return f"it is not known whether {' and '.join(names)} still fires: {why}" if why else ""


def look(run: Run) -> Alerts:
    """What Prometheus says at this moment; that it says nothing is an answer."""
    if not run.site.metrics:
        return Alerts(why="slurm-metric has no host, so nobody watches the nodes")
    source, events = run.place / "alerts.json", list[Event]()
    host = write_repair_question(source, run.site, read_contract(run.site))
    request = run.request("validate", source, monitoring_secrets(run.site))
    try:
        with signals_cancel(run.cancellation):
            execute(request, events.append, run.cancellation, run.ansible)
        run.refuse_silence(events, [host])
    except DeployError as problem:
        return Alerts(why=problem.findings[0].message)
    answers = gathered(events)
    if answers.monitoring is None:
        return Alerts(
            why=f"{host} does not answer: {answers.silent.get((MONITORING, host), 'it was not asked')}"
        )
    return _read(answers.monitoring)


def _read(said: Mapping[str, Any]) -> Alerts:
    for reply in (said["alerts"], said["targets"]):
        if reply["code"] != _OK or reply["data"] is None:
            return Alerts(why=f"Prometheus at {said['url']}: {reply['why']}")
    firing: dict[str, tuple[Fault, ...]] = {}
    pending: dict[str, tuple[Fault, ...]] = {}
    for alert in said["alerts"]["data"]:
        labels = alert["labels"]
        # Slurm's exporter reports all nodes from the controller.
        node = labels.get("node") or labels.get("instance", "")
        found = firing if alert["fires"] else pending
        found[node] = (*found.get(node, ()), _fault(labels, one_line(alert["summary"])))
    silent: dict[str, tuple[str, ...]] = {}
    for target in said["targets"]["data"]:
        if target["health"] != _UP:
            silent[target["instance"]] = (*silent.get(target["instance"], ()), target["job"])
    return Alerts(firing, pending, silent)


def _fault(labels: Mapping[str, str], summary: str) -> Fault:
    name = labels["alertname"]
    kind, label = PARTS.get(labels["repair"], PARTS[_NODE])
    words = f"alert {name}" + (f": {summary}" if summary else "")
    return Fault(kind, labels.get(label, ""), words, name)
