"""What is wrong with a host of the cluster, from what it and a controller say of it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from deploy.errors import Finding, Severity
from deploy.judge.age import age
from deploy.judge.departed import HINT
from deploy.judge.drift import Drift
from deploy.judge.node_status import NodeStatus, Reach, Service
from deploy.run.drains import is_by_health_check, is_by_slurm

_CLOCK_SECONDS = 1.0
_SECONDS_TO_SYNCHRONIZE = 300.0
_SLURM_USER = "slurm"
_SHOWN_DRIFT = 10
_DRAINED_BY_DEPLOY = re.compile(r"deploy: .* \((\S+)\)(?: : .*)?")
"""The reason that ``deploy node drain`` gives, and what Slurm adds to it; see ``run/drains.py``."""


@dataclass(frozen=True)
class Promise:
    """What the site says of a host.

    ``again``, ``check``, ``preview``, ``resume`` and ``repair`` are commands that do so to it (``again``
    converges it), ``controller`` is the host to type scontrol on. Its ``optional`` services may be missing.
    ``starts_slurmctld`` is what does, where another controller leads instead; ``among`` is what is wrong with
    it as one of several, each as reference, message and hint.
    """

    again: str
    check: str
    preview: str
    resume: str
    repair: str
    controller: str
    is_node: bool
    optional: frozenset[str] = frozenset()
    starts_slurmctld: str = ""
    among: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Judge:
    """Compares a host with what was promised, ``now``; ``is_slurm_known`` says whether a controller told."""

    status: NodeStatus
    promise: Promise
    now: float
    is_slurm_known: bool

    def findings(self) -> list[Finding]:
        """Everything that is wrong, without what only follows from it."""
        if self.status.reach is Reach.POWERED_DOWN:
            return [] if self.status.slurm is None else [*self._slurm()]
        missing = [service.name for service in self.down() if not service.is_installed]
        if missing and self.status.convergence is None and not self.status.has_records:
            message = f"deploy has not been here yet: there is no {', '.join(missing)}"
            return [self._error("never-converged", message, self.promise.again)]
        return [*self._answer(), *self._among(), *self._slurm(), *self._convergence(), *self._record()]

    def down(self) -> tuple[Service, ...]:
        """The services that should run and do not."""
        return tuple(
            service
            for service in self.status.services
            if not service.is_up and (service.is_installed or service.name not in self.promise.optional)
        )

    def _answer(self) -> Iterator[Finding]:
        if self.status.reach is Reach.ANSWERED:
            yield from self._services()
            yield from self._hardware()
            yield from self._clock()
        elif self.status.causes:
            yield from self.status.causes
        else:
            yield self._error("status-unknown", self.status.trouble, self.promise.check)

    def _services(self) -> Iterator[Finding]:
        down = self.down()
        if down:
            names = " ".join(service.name for service in down)
            why = self._there(f"why: systemctl status {names}")
            again = (names == "slurmctld" and self.promise.starts_slurmctld) or self.promise.again
            yield self._error("service-down", ", ".join(map(_described, down)), again + why)
        elif self.status.slurm_silence:
            message = f"Slurm does not report its nodes: {self.status.slurm_silence}"
            yield self._error("slurm-silent", message, "scontrol ping" + self._there())
        said = {f"{service.name}.service" for service in down}
        others = [unit for unit in self.status.failed_units if unit not in said]
        if others:
            message = f"{len(others)} failed unit{'s' * (len(others) > 1)}: {', '.join(others)}"
            yield self._warning("unit-failed", message, "systemctl --failed" + self._there())

    def _among(self) -> Iterator[Finding]:
        """What is wrong with one of several controllers, and does not follow from what is said already."""
        is_said = self.status.reach is not Reach.ANSWERED
        is_said = is_said or bool(
            {"slurmctld", "munge", "mariadb"} & {service.name for service in self.down()}
        )
        for reference, message, hint in () if is_said else self.promise.among:
            yield self._error(reference, message, hint)

    def _hardware(self) -> Iterator[Finding]:
        if self.status.shortfalls:
            message = "; ".join(self.status.shortfalls)
            accept = f"write what it has into slurmd_hardware or hardware.yml, then: {self.promise.again}"
            yield self._error("hardware-below-contract", message, f"fix it, or {accept}")

    def _clock(self) -> Iterator[Finding]:
        clock, chrony = self.status.clock, self.status.service("chrony")
        if clock is None:
            return
        if abs(clock.certain) > _CLOCK_SECONDS:
            direction = "ahead of" if clock.certain > 0 else "behind"
            message = f"the clock is {abs(clock.certain):.1f} s {direction} this machine's"
            yield self._error("clock-off", message, "chronyc makestep" + self._there())
        if clock.synchronized is False and chrony and (chrony.seconds or 0.0) > _SECONDS_TO_SYNCHRONIZE:
            message = "chrony has found no time server that answers"
            yield self._warning("clock-unsynchronized", message, "chronyc sources" + self._there())

    def _slurm(self) -> Iterator[Finding]:
        node = self.status.slurm
        resume = f"scontrol update nodename={self.status.name} state=resume   (on {self.promise.controller}"
        if node is None:
            if self.promise.is_node and self.is_slurm_known:
                yield self._error("node-not-in-slurm", "slurmctld does not know it", self.promise.again)
        elif node.is_drained:
            hint = self._way_back(node.reason or "") or f"{resume}, when it is fit)"
            yield self._error("node-drained", self._out_of_service("drained"), hint)
        elif node.is_down and not self._is_loss_explained():
            yield self._error("node-down", self._out_of_service(f"Slurm says {node.word}"), f"{resume})")

    def _way_back(self, reason: str) -> str:
        """The command of deploy's that takes a drained node into service; empty where there is none."""
        if is_by_health_check(reason) or is_by_slurm(reason) or reason.startswith("deploy: repair: "):
            return self.promise.repair
        by_deploy = _DRAINED_BY_DEPLOY.fullmatch(reason)
        return f"{self.promise.resume} --by {by_deploy[1]}" if by_deploy else ""

    def _out_of_service(self, state: str) -> str:
        """A state of Slurm's with its reason: ``drained: bad disk (root, 3 days ago)``."""
        node = self.status.slurm
        if node is None or not node.reason:
            return state
        details = [node.by] * bool(node.by)
        details += [] if node.since is None else [f"{age(self.now - node.since)} ago"]
        return f"{state}: {node.reason}" + (f" ({', '.join(details)})" if details else "")

    def _is_loss_explained(self) -> bool:
        """Whether Slurm, and nobody else, put the node out of service for something that is said already."""
        by = self.status.slurm.by if self.status.slurm else ""
        if self.status.reach is Reach.POWERED_DOWN:
            return False
        lost = self.status.reach is not Reach.ANSWERED
        lost = lost or bool({"slurmd", "munge"} & {service.name for service in self.down()})
        return lost and by in {"", _SLURM_USER}

    def _convergence(self) -> Iterator[Finding]:
        if self.status.convergence is None:
            message = "no recorded run has converged it"
            yield self._warning("never-converged", message, self.promise.again)

    def _record(self) -> Iterator[Finding]:
        """What differs from what was converged, and what the site now says otherwise."""
        record = self.status.record
        if record is None or record.why:
            return
        if undone := [text for texts in record.pending.values() for text in texts]:
            yield self._warning("left-to-a-later-run", "; ".join(undone), self.promise.again)
        if self.status.convergence is None and not self.status.has_records:
            return
        drift = [str(drift) for drift in record.drift if not self._is_said(drift)]
        if drift:
            more = f"; and {len(drift) - _SHOWN_DRIFT} more" if len(drift) > _SHOWN_DRIFT else ""
            yield self._error("host-drifted", "; ".join(drift[:_SHOWN_DRIFT]) + more, self.promise.again)
        if record.stale:
            message = f"not as the site says now: {', '.join(record.stale)}"
            yield self._warning("site-changed", message, self.promise.preview)
        if record.left:
            message = f"was managed once, and the site says no more: {', '.join(record.left)}"
            yield self._warning("left-over", message, HINT)

    def _is_said(self, drift: Drift) -> bool:
        """Whether another finding reports the same, or what it comes from."""
        down = {service.name for service in self.down()}
        match drift.kind:
            case "services":
                return drift.name.removesuffix(".service") in down
            case "hardware":
                return bool(self.status.shortfalls)
            case "probe":
                return bool(down) and drift.cannot_be_asked
        return False

    def _there(self, what: str = "") -> str:
        return f"   (on {self.status.name}{', ' * bool(what)}{what})"

    def _error(self, reference: str, message: str, hint: str) -> Finding:
        return Finding(self.status.name, reference, message, hint)

    def _warning(self, reference: str, message: str, hint: str) -> Finding:
        return Finding(self.status.name, reference, message, hint, Severity.WARNING)


def _described(service: Service) -> str:
    if not service.is_installed:
        return f"{service.name} is not installed"
    since = "" if service.seconds is None else f" for {age(service.seconds)}"
    result = "" if service.result in {"", "success"} else f" ({service.result})"
    return f"{service.name} {service.active}{since}{result}"
