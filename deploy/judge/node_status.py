"""What one host of the cluster is like: the answer of the module node_status, as values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from deploy.errors import Finding
from deploy.judge.convergence import Convergence
from deploy.judge.drift import HostState
from deploy.judge.findings import findings_of
from deploy.run.events import HostResult, Status
from deploy.run.message import one_line

_NOT_RESPONDING = "NOT_RESPONDING"
_SWITCHED_OFF = frozenset({"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP"})
_WITH_JOBS = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})


class Reach(StrEnum):
    """Whether a host answered; nobody asks nodes that Slurm alone knows, or that it has switched off."""

    ANSWERED = "answered"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    NOT_ASKED = "not asked"
    POWERED_DOWN = "powered down"


@dataclass(frozen=True)
class Service:
    """A daemon as systemd sees it; ``seconds`` is for how long it has been so, if that is known."""

    name: str
    load: str
    active: str
    result: str
    seconds: float | None

    @property
    def is_up(self) -> bool:
        """Whether it runs."""
        return self.active in {"active", "reloading", "refreshing"}

    @property
    def is_installed(self) -> bool:
        """Whether systemd knows it."""
        return self.load != "not-found"


@dataclass(frozen=True)
class Clock:
    """By how much the host's clock is ahead of ours: at least and at most, in seconds.

    ``chrony_ahead`` is chrony's own estimate against true time; None when chrony does not say.
    """

    least: float
    most: float
    synchronized: bool | None = None
    chrony_ahead: float | None = None

    @property
    def certain(self) -> float:
        """The least by which the clocks differ, however long the way was; positive when theirs is ahead."""
        return self.least if self.least > 0 else min(self.most, 0.0)


@dataclass(frozen=True)
class SlurmNode:
    """A node as slurmctld sees it: its state's flags, and why it is out of service, by whom, since when."""

    flags: tuple[str, ...]
    reason: str
    by: str
    since: float | None

    @property
    def is_drained(self) -> bool:
        """Whether it gets no new jobs until somebody resumes it."""
        return "DRAIN" in self.flags

    @property
    def is_down(self) -> bool:
        """Whether it cannot run jobs; one that is switched off need not answer."""
        bad = {"DOWN", "FAIL", "FAILING", "ERROR", "UNKNOWN", "INVALID_REG"}
        bad |= set() if _SWITCHED_OFF & {*self.flags} else {_NOT_RESPONDING}
        return not self.flags or bool(bad & {*self.flags})

    @property
    def word(self) -> str:
        """The state as ``sinfo`` writes it: ``idle``, ``drained``, ``down*`` for one that does not answer."""
        base, *others = self.flags or ("UNKNOWN",)
        star = "*" * (_NOT_RESPONDING in others)
        words = [flag.lower() for flag in others if flag not in {"DRAIN", _NOT_RESPONDING}]
        if self.is_drained and base != "DOWN":
            return "+".join(["draining" if _WITH_JOBS & {*self.flags} else "drained", *words]) + star
        return "+".join([base.lower(), *["drained"] * self.is_drained, *words]) + star


@dataclass(frozen=True)
class NodeStatus:
    """A host: what it said of itself and what others say of it. What is not known or does not apply is None.

    ``trouble`` is why it gave no answer, ``causes`` the same where Ansible's words have a known meaning;
    ``slurm_silence`` is why a controller could not report its nodes; ``record`` is how it compares with its
    own record of what was converged.
    """

    name: str
    reach: Reach
    trouble: str = ""
    causes: tuple[Finding, ...] = ()
    services: tuple[Service, ...] = ()
    failed_units: tuple[str, ...] = ()
    shortfalls: tuple[str, ...] | None = None
    clock: Clock | None = None
    slurm: SlurmNode | None = None
    slurm_silence: str = ""
    convergence: Convergence | None = None
    record: HostState | None = None

    @property
    def has_records(self) -> bool:
        """Whether the host itself says what of it was converged."""
        return bool(self.record and self.record.phases)

    def service(self, name: str) -> Service | None:
        """The service of that name, where the host should have it and said how it is."""
        return next((service for service in self.services if service.name == name), None)


def answer_of(name: str, result: HostResult | None, address: str = "") -> NodeStatus:
    """What a host said of itself; ``result`` is None when Ansible never came to ask it.

    ``address`` is where one logs in by hand.
    """
    if result is None:
        return NodeStatus(name, Reach.FAILED, "it was not asked")
    if result.answer is None:
        reach = Reach.UNREACHABLE if result.status is Status.UNREACHABLE else Reach.FAILED
        return NodeStatus(name, reach, one_line(result.message), findings_of(result, address))
    answer = result.answer
    shortfalls = answer["shortfalls"]
    return NodeStatus(
        name,
        Reach.ANSWERED,
        services=tuple(Service(**service) for service in answer["services"]),
        failed_units=tuple(map(one_line, answer["failed_units"])),
        shortfalls=None if shortfalls is None else tuple(shortfalls),
        clock=_clock(answer),
        slurm_silence=one_line((answer["slurm"] or {}).get("error", "")),
    )


def slurm_nodes(result: HostResult | None) -> dict[str, SlurmNode] | None:
    """By name, what a controller said of all nodes; None when it did not."""
    told = (result.answer or {}).get("slurm") if result else None
    nodes = (told or {}).get("nodes")
    return None if nodes is None else {one_line(name): _slurm_node(node) for name, node in nodes.items()}


def _slurm_node(node: Mapping[str, Any]) -> SlurmNode:
    state = node["state"].upper().replace("*", f"+{_NOT_RESPONDING}")
    flags = tuple(flag for flag in re.split(r"[^A-Z_]+", state) if flag)
    return SlurmNode(flags, one_line(node["reason"]), one_line(node["by"]), node["since"])


def _clock(answer: Mapping[str, Any]) -> Clock:
    least, most = answer["ahead"]
    chrony = answer["clock"]
    return Clock(
        least,
        most,
        synchronized=chrony.get("synchronized"),
        chrony_ahead=chrony.get("ahead"),
    )
