"""Machines as Ansible sees them: what each playbook finds there, without a connection."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from deploy.engine import alone, apply, discover, members, records
from deploy.engine.consent import Agrees
from deploy.engine.converge import converge, look_ahead
from deploy.engine.options import Options
from deploy.engine.run import Run
from deploy.judge.preview import Preview
from deploy.judge.summary import Summary
from deploy.run.cluster_lock import Held
from deploy.run.events import Ending, Event, HostStats, Status
from deploy.run.execute import EarlyStart, Execution, RunRequest
from deploy.run.ssh import Unanswered
from deploy.show.plain import PlainDisplay
from deploy.site.hardware import read_contract
from deploy.site.inventory import Host, Site, read_site
from tests.unit.show.runs import ended, result, stats

HARDWARE = {"cpus": 4, "memory_mb": 8000, "gpus": []}
NOTHING: dict[str, Any] = {"cluster": None, "secrets": [], "state": False}


@dataclass
class Machines:
    """By host what it has of a cluster, and whose munge key the site does not know."""

    serves: dict[str, dict[str, Any]] = field(default_factory=dict)
    strange: set[str] = field(default_factory=set)
    queues: dict[str, list[dict[str, str]] | None] = field(default_factory=dict)
    """What hosts answer that are asked for the jobs of their cluster."""
    ran: list[str] = field(default_factory=list)
    """The playbooks."""
    asked: list[str] = field(default_factory=list)
    """The hosts that were asked for jobs."""
    said: dict[str, Any] = field(default_factory=dict)
    """What hosts say that are asked for their records, and answer."""
    idle: float = math.inf
    """How many seconds ago another run ended."""
    looks: int = 0
    """How often the controller was asked for its records."""
    locked: list[str] = field(default_factory=list)
    """The hosts whose lock is held."""
    held: list[str] = field(default_factory=list)
    """The hosts whose lock was ever held."""
    wrote: list[tuple[str, bool]] = field(default_factory=list)
    """The verbs by which hosts were told to write, and whether the controller's lock was held."""
    previewed: list[Preview] = field(default_factory=list)
    """What was shown before anybody was asked."""

    def run(self, inventory: Path, agrees: Agrees, options: Options | None = None) -> Summary:
        """What ``deploy cluster`` comes to."""
        return converge(self._site_run(inventory, options), self._display(), agrees)

    def settle(self, inventory: Path) -> None:
        """All hosts are as they were recorded, and say so; no list of hosts is there yet."""
        run = self._site_run(inventory)
        for name, phases in run.records.expected(read_contract(run.site)).items():
            records = {phase: {"fingerprint": of, "drift": []} for phase, of in phases.items()}
            self.said[name] = {"records": records, "left": [], "pending": {}, "hosts": {}, "slurm": ""}

    def plan(self, inventory: Path) -> Any:  # noqa: ANN401 - the preview
        """What ``deploy plan`` previews."""
        return look_ahead(self._site_run(inventory), PlainDisplay(lambda _: None)).preview

    def _display(self) -> PlainDisplay:
        return _Quiet(self.previewed)

    @staticmethod
    def _site_run(inventory: Path, options: Options | None = None) -> Run:
        site = read_site(inventory)
        place = inventory.parent / "place"
        place.mkdir(exist_ok=True)
        return run_on(site, options, place=place)

    def execute(self, request: RunRequest, on_event: Callable[[Event], None], *_: object) -> Execution:
        name = request.playbook.stem
        # Nothing tells that phases ended, so what is left of them is tried once more.
        self.ran += [name] * (name not in self.ran)
        hosts = ("ctl1", "login1", "node1", "node2")
        holds_secrets = name != "discover"
        unfit = self.strange if holds_secrets else set()
        for host in hosts:
            on_event(self._check(host, is_unfit=host in unfit))
        if not unfit:
            if name == "discover":
                for node in ("node1", "node2"):
                    on_event(replace(result(node), answer={"hardware": HARDWARE}))
            slurm = {"configured": False, "answers": False, "jobs": [], "version": ""}
            on_event(replace(result("ctl1"), answer={"slurm": slurm}))
            if name == "plan":
                on_event(result("ctl1", Status.CHANGED))
        counts = {
            host: HostStats(ok=1, changed=host == "ctl1" and not unfit, failed=host in unfit)
            for host in hosts
        }
        on_event(stats(**counts))
        on_event(ended(rc=2 if unfit else 0))
        return Execution(2 if unfit else 0, Ending.FINISHED)

    def _check(self, host: str, *, is_unfit: bool) -> Event:
        finding = {"severity": "error", "reference": "unknown-secret", "message": "another key", "hint": "x"}
        answer = {"findings": [finding] * is_unfit, "checked": [], "serves": self.serves.get(host, NOTHING)}
        return replace(result(host, Status.FAILED if is_unfit else Status.OK), answer=answer)

    @contextmanager
    def lock(self, controllers: Sequence[Host], *_: object) -> Iterator[Held]:
        """The cluster's lock."""
        self.locked = [host.name for host in controllers]
        self.held += self.locked
        yield Held(idle=self.idle)
        self.locked = []

    def ask(self, questions: Mapping[str, Any], *_: object, **__: object) -> dict[str, Any]:
        answers: dict[str, Any] = {}
        for name, (verb, _arguments) in questions.items():
            self.looks += verb == "look" and name == "ctl1"
            self.wrote += [(verb, "ctl1" in self.locked)] * (verb in {"forget", "record", "know"})
            if verb == "look" and name in self.said:
                answers[name] = self.said[name]
                continue
            if verb == "know":
                answers[name] = {}
                continue
            is_asked = verb == "queue"
            self.asked += [name] * is_asked
            answers[name] = self.queues.get(name) if is_asked else Unanswered("not here")
        return answers


def run_on(site: Site, options: Options | None = None, *, place: Path) -> Run:
    """A run that nothing was started for."""
    options = options or Options()
    limit = frozenset(options.limit.split(",")) if options.limit else None
    return Run(site, options, options.settings, place, limit, EarlyStart({}, site.inventory))


class _Quiet(PlainDisplay):
    def __init__(self, previewed: list[Preview]) -> None:
        super().__init__(lambda _: None)
        self._foretold = previewed

    def plan(self, preview: Preview) -> None:
        self._foretold.append(preview)


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machines:
    """Those of a small site."""
    made = Machines()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for step in (apply, discover):
        monkeypatch.setattr(step, "execute", made.execute)
    monkeypatch.setattr(alone, "cluster_lock", made.lock)
    monkeypatch.setattr(records, "ask", made.ask)
    monkeypatch.setattr(members, "ask", made.ask)
    return made
