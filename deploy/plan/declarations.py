"""What a role says of itself to deploy, in its ``meta/deploy.yml``: its service, and the phases it leads.

::

    service:
      unit: prometheus-node-exporter     # without .service
      optional: true                     # some distributions lack it, and a host works without
    listens:                             # on the port that its variable <role>_port says
      programs: [prometheus-node-exporter]
      to: watchers                       # Prometheus; or cluster, or people: a page
      asks_nobody: true                  # it shows and does everything for everybody who reaches it
      job: node                          # what Prometheus asks there, as a scrape job of this name
    listens_also:                        # further ports of its daemons, each by what its variables begin with
      node_exporter_second: {programs: [prometheus-node-exporter], to: watchers}
    phases:
      - name: node_exporter
        title: Node exporter
        hosts: watched                   # deploy/plan/selectors.py
        tag: monitoring                  # of ansible-playbook, beside the roles' own names
        after: [base]
        steps:
          - {role: node_exporter, title: Exporter of the host}

Where a phase has its turn is in ``deploy/plan/catalog.py``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from deploy.content import read_data, roles


@dataclass(frozen=True)
class Service:
    """A daemon that a role leaves running."""

    unit: str
    """Its systemd unit, without ``.service``."""
    optional: bool = False
    """Whether some distributions lack it, and a host works without."""


@dataclass(frozen=True)
class Listening:
    """What listens on a role's port (``<role>_port``), on the hosts of its phases."""

    programs: tuple[str, ...]
    """The processes: the usual one, and others that may."""
    to: str
    """Who comes there: ``cluster`` for its hosts, ``watchers`` for Prometheus, ``people`` for those, too,
    ``users`` for everybody who may log in."""
    asks_nobody: bool = False
    """Whether it shows and does everything for everybody who reaches it."""
    job: str = ""
    """The scrape job in which Prometheus asks it; empty for none."""

    @property
    def is_watched(self) -> bool:
        """Whether it is part of the monitoring."""
        return self.to in {"watchers", "people"}

    @property
    def is_page(self) -> bool:
        """Whether people open it."""
        return self.to == "people"


@dataclass(frozen=True)
class Step:
    """A role in a phase, as a task of the phase's play."""

    role: str
    title: str
    tasks_from: str = ""
    tags: tuple[str, ...] = ()
    """Instead of the phase's tag and the role's name."""
    vars: tuple[tuple[str, str], ...] = ()
    """Of that task alone: names and values."""


@dataclass(frozen=True)
class Declared:
    """A phase as a role declares it; what the keys mean, ``catalog.Phase`` says."""

    name: str
    title: str
    hosts: str
    tag: str
    steps: tuple[Step, ...]
    after: tuple[str, ...] = ()
    after_everywhere: tuple[str, ...] = ()
    cluster_wide: bool = False
    needs_contract: bool = False
    needs_gpus: bool = False
    follows_membership: bool = False
    together: bool = False
    all_or_nobody: bool = False


def service(role: str) -> Service | None:
    """The service of a role, None where it leaves none; TypeError at a key that Service has not."""
    said = _declarations().get(role, {}).get("service")
    return Service(**said) if said else None


def listening(name: str) -> Listening | None:
    """What listens on a role's port, or on a further one, ``<name>_port``; None where nothing does.

    TypeError at a key that Listening has not.
    """
    said = _declarations().get(name, {}).get("listens") or _further().get(name)
    return Listening(**{**said, "programs": tuple(said["programs"])}) if said else None


def listening_names(role: str) -> tuple[str, ...]:
    """What the variables of a role's ports begin with: its own name, and those of further ports."""
    further = _declarations().get(role, {}).get("listens_also", {})
    return tuple(name for name in (role, *further) if listening(name))


def _further() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for said in _declarations().values():
        found |= said.get("listens_also", {})
    return found


def phases() -> Iterator[Declared]:
    """The phases that roles lead, in no order; TypeError at a key that Declared has not."""
    for said in _declarations().values():
        for phase in said.get("phases", ()):
            steps = tuple(
                Step(**{**step, **_tuples(step, "tags"), "vars": tuple(step.get("vars", {}).items())})
                for step in phase["steps"]
            )
            yield Declared(**{**phase, **_tuples(phase, "after", "after_everywhere"), "steps": steps})


@cache
def optional_units() -> frozenset[str]:
    """Units without which a host works, of all roles."""
    declared = (service(role) for role in _declarations())
    return frozenset(one.unit for one in declared if one and one.optional)


def _tuples(said: Mapping[str, Any], *names: str) -> dict[str, tuple[str, ...]]:
    return {name: tuple(said[name]) for name in names if name in said}


@cache
def _declarations() -> Mapping[str, dict[str, Any]]:
    """By role what it declares."""
    return {path.parents[1].name: read_data(path) for path in sorted(roles().glob("*/meta/deploy.yml"))}
