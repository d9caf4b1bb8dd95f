"""What hosts answer when they are asked whether they still are as they were recorded."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from deploy.plan.catalog import PHASES
from deploy.plan.probes import probes

_BEGINS = "base"
_DRIVER = re.compile(
    r"(lib)?nvidia-|libcuda|firmware-nvidia|cuda-|tensorrt|lib(cu(b|d|f|o|s|inj|pti|rand)|nccl|nv|npp)"
)
"""Packages that must not be replaced under jobs: their role does it, on a drained node."""
_UNANSWERED = "failed"
"""What host_records says of a probe whose command fails."""
_NO_ANSWER = (("type", "no answer"),)
"""What it says of a file on a file system that does not answer."""


@dataclass(frozen=True)
class Drift:
    """One thing that differs from its record; ``changed`` is when, in seconds since the epoch, if known."""

    kind: str
    name: str
    recorded: Any
    found: Any
    changed: float | None = None

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Self:
        """A difference as a host tells it; see ``host_records``."""
        values = {name: _frozen(entry.get(name)) for name in ("recorded", "found")}
        return cls(entry["kind"], entry["name"], changed=entry.get("changed"), **values)

    @property
    def cannot_be_asked(self) -> bool:
        """Whether a role's own question got no answer."""
        return self.kind == "probe" and self.found == _UNANSWERED

    @property
    def is_objection(self) -> bool:
        """Whether it is no change, but something of others that keeps what deploy wrote from its effect."""
        return self.kind == "objection"

    @property
    def runs_otherwise(self) -> bool:
        """Whether a service runs, and not as it was started when it was recorded."""
        if self.kind != "services" or not (self.recorded and self.found):
            return False
        before, after = dict(self.recorded), dict(self.found)
        return bool(before.get("command") and after.get("command")) and before["command"] != after["command"]

    def __str__(self) -> str:
        if self.is_objection:
            return self.name
        when = f", changed {_shown(self.changed)}" if self.changed else ""
        return f"{_subject(self.kind, self.name)} {_difference(self)}{when}"


@dataclass(frozen=True)
class PhaseState:
    """A phase on a host: ``is_current`` when it was recorded for the site as it is now."""

    name: str
    is_current: bool
    drift: tuple[Drift, ...]

    @property
    def is_converged(self) -> bool:
        """Whether nothing has to be done."""
        return self.is_current and not self.drift


@dataclass(frozen=True)
class HostState:
    """The recorded phases of a host, and those that have no record; ``why`` when it gave no answer.

    ``left`` is what was managed there once, is managed no more, and is still there; ``pending`` is by phase
    without a record what the last run that worked on it left to a later one.
    """

    phases: tuple[PhaseState, ...] = ()
    unrecorded: tuple[str, ...] = ()
    why: str = ""
    left: tuple[str, ...] = ()
    pending: Mapping[str, Sequence[str]] = field(default_factory=dict)
    at: float = 0.0
    """When the newest record was written, by which ``version``."""
    version: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether each phase came to its end there, now or for the site as it was."""
        return bool(self.phases) and set(self.unrecorded) <= self.pending.keys()

    @property
    def drift(self) -> tuple[Drift, ...]:
        """Everything that differs, each once."""
        return tuple(dict.fromkeys(drift for phase in self.phases for drift in phase.drift))

    @property
    def outdated(self) -> tuple[str, ...]:
        """The phases that the site, or deploy itself, now says otherwise than when they were recorded."""
        return tuple(phase.name for phase in self.phases if not phase.is_current)

    @property
    def stale(self) -> tuple[str, ...]:
        """The phases that a run has something to do for, but for those that the last one could not end."""
        return tuple(name for name in (*self.outdated, *self.unrecorded) if name not in self.pending)

    @property
    def current(self) -> frozenset[str]:
        """The phases that were recorded for the site as it is now, whatever has changed on the host since."""
        return frozenset(phase.name for phase in self.phases if phase.is_current)

    @property
    def converged(self) -> frozenset[str]:
        """The phases that need not run.

        Where packages or the system itself changed, every phase has to look at what that did to it.
        """
        if any(drift.kind in {"packages", "system"} for drift in self.drift):
            return frozenset()
        # Where every host begins, files are put aside and services restarted.
        begins = {_BEGINS} if self.repairs.keys() & {"bootstrap_put_aside", "bootstrap_restart"} else set()
        return frozenset(phase.name for phase in self.phases if phase.is_converged) - begins

    @property
    def repairs(self) -> dict[str, Any]:
        """Variables that bring back what roles that only ask for its presence would leave as it is."""
        said: dict[str, list[str]] = {}
        if appeared := [drift.name for drift in self.drift if drift.kind == "beside" and not drift.recorded]:
            said["bootstrap_put_aside"] = appeared
        if otherwise := [drift.name for drift in self.drift if drift.runs_otherwise]:
            said["bootstrap_restart"] = otherwise
        versions = [
            f"{drift.name}={drift.recorded}"
            for drift in self.drift
            if drift.kind == "packages" and drift.recorded and drift.found and not _DRIVER.match(drift.name)
        ]
        if versions:
            said["bootstrap_restore_versions"] = versions
        return {**said, **dict.fromkeys(self._told_otherwise, True)}

    @property
    def _told_otherwise(self) -> list[str]:
        """Variables by which roles have daemons read again what they were told otherwise."""
        if not self.drift:
            return []
        asked = {
            probe["name"]: probe["mended_by"]
            for phase in PHASES
            if any(phase.name == state.name for state in self.phases)
            for role in phase.roles
            for probe in probes(role)
            if "mended_by" in probe
        }
        # One that does not answer may have been told before.
        return list(dict.fromkeys(asked[each.name] for each in self.drift if each.name in asked))


def host_state(
    answer: object,
    expected: Mapping[str, str],
    left: Iterable[Mapping[str, str]] = (),
    pending: Mapping[str, Sequence[str]] | None = None,
) -> HostState:
    """A host's answer (see ``host_records.verify`` and ``left_over``) compared with its fingerprints."""
    if not isinstance(answer, Mapping):
        return HostState(unrecorded=tuple(expected), why=str(getattr(answer, "why", "no answer")))
    phases = tuple(
        PhaseState(
            phase.name,
            answer[phase.name]["fingerprint"] == expected[phase.name],
            tuple(Drift.of(entry) for entry in answer[phase.name]["drift"]),
        )
        for phase in PHASES
        if phase.name in expected and phase.name in answer
    )
    unrecorded = tuple(name for name in expected if name not in answer)
    undone = {name: texts for name, texts in (pending or {}).items() if name in unrecorded}
    none: Mapping[str, Any] = {}
    newest = max(answer.values(), key=lambda record: float(record.get("at", 0)), default=none)
    return HostState(
        phases,
        unrecorded,
        left=left_over(left),
        pending=undone,
        at=float(newest.get("at", 0)),
        version=str(newest.get("version", "")),
    )


def left_over(entries: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """In words what ``host_records`` says is left over."""
    return tuple(_subject(entry["kind"], entry["name"]) for entry in entries)


def _frozen(value: object) -> object:
    """Comparable and hashable, as Drift needs it."""
    if isinstance(value, dict):
        return tuple((name, _frozen(part)) for name, part in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _subject(kind: str, name: str) -> str:
    word = {
        "packages": "package ",
        "services": "service ",
        "users": "user ",
        "groups": "group ",
        "mounts": "mount ",
        "sysctls": "kernel setting ",
        "modules": "kernel module ",
        "hardware": "hardware: ",
        "system": "the distribution",
    }.get(kind, "")
    return word + name


def _difference(drift: Drift) -> str:
    before, after = drift.recorded, drift.found
    if drift.kind == "probe":
        return "cannot be asked" if drift.cannot_be_asked else "differs"
    if after is None or after is False:
        return "is missing"
    if before is None or before is False:
        return "is there, and was not"
    if after == _NO_ANSWER:
        return "does not answer"
    if isinstance(before, tuple) and isinstance(after, tuple):
        return ", ".join(_changes(dict(before), dict(after))) or "differs"
    return f"is {after}, was {before}"


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if old == new or (name == "command" and not new):
            continue
        if name == "content":
            yield "differs"
        elif name == "runs":
            yield "runs" if new else "is stopped"
        elif name == "command":
            yield f"runs as {new}, ran as {old}"
        elif name == "at boot":
            yield f"is {new or 'unknown'} at boot, was {old or 'unknown'}"
        else:
            yield f"has {name} {_plain(new)}, had {_plain(old)}"


def _plain(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _shown(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M")
