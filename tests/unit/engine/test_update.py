"""The order of an update, and where it ends."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deploy.engine import database
from deploy.engine import update as module
from deploy.engine.batches import Share
from deploy.engine.batches import Work as BatchWork
from deploy.engine.drains import Drain, Ledger, Node
from deploy.engine.options import Options
from deploy.errors import DeployError, ExitCode, Finding
from deploy.run.ssh import Unanswered
from deploy.show.update import pending_lines
from tests.unit.site.sites import write_site

SITE = (
    "[slurm-master]\nctl1 ansible_host=10.0.0.1\n[slurm-login]\nlogin1 ansible_host=10.0.0.4\n"
    "[slurm-node]\nnode1 ansible_host=10.0.0.2\nnode2 ansible_host=10.0.0.3\n"
)
OPENSSL = {"name": "openssl", "old": "1", "new": "2", "security": True}


class Machines:
    """Hosts on which things wait, and which remember what was done there, in turn."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[dict[str, Any]]] = {}
        self.units: dict[str, list[str]] = {}
        self.trouble: dict[str, str] = {}
        self.unfetched: dict[str, str] = {}
        self.silent: set[str] = set()
        self.drains: dict[str, str] = {}
        self.done: list[str] = []
        self.held: set[str] = set()

    def ask(self, questions: Mapping[str, Any], *_: object, **__: object) -> dict[str, Any]:
        return {
            name: Unanswered("timed out") if name in self.silent else getattr(self, f"_{verb}")(name, **given)
            for name, (verb, given) in questions.items()
        }

    def _start(self, name: str, action: str, held: str) -> dict[str, Any]:
        self.held.add(held)
        if action == "install":
            self.done.append(f"install {name}")
            self.waiting.pop(name, None)
        return {
            "runs": action == "refresh",
            "trouble": self.trouble.get(name, "") if action == "install" else "",
        }

    def _state(self, name: str, action: str) -> dict[str, Any]:
        assert action == "refresh"
        return {"runs": False, "trouble": self.unfetched.get(name, "")}

    def _finish(self, _: str, action: str) -> None:
        assert action in {"refresh", "install"}

    def _look(self, name: str) -> dict[str, Any]:
        updates = self.waiting.get(name, [])
        units = self.units.get(name, []) if not updates else []
        return {"unfinished": False, "updates": updates, "held": [], "stale": {"units": units, "reboot": []}}

    def _restart(self, name: str, units: tuple[str, ...]) -> dict[str, str]:
        self.done.append(f"restart {','.join(units)} {name}")
        del self.units[name]
        return {}

    def nodes(self) -> tuple[Node, ...]:
        return tuple(Node(name, ("IDLE",), "", "", self._drains(name), ()) for name in ("node1", "node2"))

    def _drains(self, name: str) -> tuple[Drain, ...]:
        why = self.drains.get(name)
        return (Drain(name, "root", why, 0, why),) if why else ()


@contextmanager
def nobody_else(*_: object, **__: object) -> Iterator[float]:
    yield 0.0


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> Machines:
    made = Machines()
    monkeypatch.setattr(module, "ask", made.ask)
    monkeypatch.setattr(module, "alone", nobody_else)
    monkeypatch.setattr(module, "_POLL_SECONDS", 0)
    monkeypatch.setattr(Ledger, "nodes", lambda *_: made.nodes())

    def in_batches(
        _: Ledger, names: list[str], most: Share, work: BatchWork, __: Callable[[str], None]
    ) -> None:
        assert (str(most), work.what) == ("1", "update")
        for name in names:
            made.done.append(f"batch {name}")

    monkeypatch.setattr(module, "in_batches", in_batches)
    return made


def updated(tmp_path: Path, *, agrees: bool = True) -> module.Updated:
    inventory = write_site(tmp_path, SITE)
    return module.update(inventory, Options(), lambda _: agrees, most=Share(1), say=print)


def test_nodes_come_first_and_controllers_last(machines: Machines, tmp_path: Path) -> None:
    machines.waiting = {name: [OPENSSL] for name in ("ctl1", "login1", "node1", "node2")}
    machines.units = {"login1": ["chrony.service", "ssh.service"]}
    came = updated(tmp_path)
    assert machines.done == [
        *("batch node1", "batch node2", "install login1"),
        *("restart chrony.service,ssh.service login1", "install ctl1"),
    ]
    assert came.hosts == ("ctl1", "login1", "node1", "node2")
    (held,) = machines.held
    assert held.startswith("^(slurm|")
    assert "|nvidia|" in held


def test_where_nothing_waits_nothing_is_done(machines: Machines, tmp_path: Path) -> None:
    assert (updated(tmp_path).hosts, machines.done) == ((), [])


def test_nothing_is_done_without_consent(machines: Machines, tmp_path: Path) -> None:
    machines.waiting = {"ctl1": [OPENSSL]}
    assert (updated(tmp_path, agrees=False).hosts, machines.done) == ((), [])


def test_a_node_that_an_update_left_drained_is_taken_up_again(machines: Machines, tmp_path: Path) -> None:
    machines.drains = {"node2": "update of the distribution's packages: it does not answer"}
    assert updated(tmp_path).hosts == ("node2",)
    assert machines.done == ["batch node2"]


@pytest.mark.parametrize("why", ["it does not answer", "its lists do not come"])
def test_a_host_that_cannot_say_what_waits_is_left_out(machines: Machines, tmp_path: Path, why: str) -> None:
    machines.waiting = {name: [OPENSSL] for name in ("ctl1", "node1", "node2")}
    if why == "it does not answer":
        machines.silent = {"node1"}
    else:
        machines.unfetched = {"node1": "E: EXPKEYSIG 1"}
    came = updated(tmp_path)
    assert machines.done == ["batch node2", "install ctl1"]
    (finding,) = came.left_out
    assert (finding.where, finding.reference) == ("node1", "host-not-updated")
    shown = [*pending_lines(module.pending(tmp_path / "inventory.ini", Options(), print))]
    assert any(line.startswith("node1: left out, it cannot say what waits: ") for line in shown)


def test_a_server_that_cannot_say_what_waits_ends_it_before_it_began(
    machines: Machines, tmp_path: Path
) -> None:
    machines.waiting, machines.silent = {"login1": [OPENSSL]}, {"ctl1"}
    with pytest.raises(DeployError) as problem:
        updated(tmp_path)
    assert problem.value.exit_code is ExitCode.UNREACHABLE
    (finding,) = problem.value.findings
    assert (finding.where, finding.reference) == ("ctl1", "host-not-updated")
    assert machines.done == []


def test_the_first_bad_host_ends_it(machines: Machines, tmp_path: Path) -> None:
    machines.waiting = {name: [OPENSSL] for name in ("ctl1", "login1")}
    machines.trouble = {"login1": "dpkg: error processing package openssl"}
    with pytest.raises(DeployError) as problem:
        updated(tmp_path)
    (finding,) = problem.value.findings
    assert (finding.where, finding.reference) == ("login1", "update-stopped")
    assert "dpkg: error" in finding.message
    assert machines.done == ["install login1"]


@pytest.mark.parametrize(
    ("more", "last"),
    [
        ("ctl1\n", "ctl1"),
        ("here ansible_connection=local\n", "here"),
        # Of those that have a vote on it, no two may be away at once.
        ("db1 ansible_host=10.0.0.5\n[slurm-database]\nctl1\ndb1\nlogin1\n", "db1"),
    ],
)
def test_a_node_that_others_need_goes_alone(
    machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, last: str
) -> None:
    monkeypatch.setattr(database, "half_database", lambda *_: [])
    monkeypatch.setattr(
        Ledger, "nodes", lambda *_: (*machines.nodes(), Node(last, ("IDLE",), "", "", (), ()))
    )
    machines.waiting = {name: [OPENSSL] for name in ("node1", "node2", last)}
    inventory = write_site(tmp_path, SITE + more)
    module.update(inventory, Options(), lambda _: True, most=Share(1), say=print)
    assert machines.done == ["batch node1", "batch node2", f"install {last}"]


MEMBERS = SITE + "[slurm-database]\nctl1\nlogin1\ndb1\n[all]\ndb1 ansible_host=10.0.0.5\n"


def test_members_of_the_database_are_updated_one_by_one_while_all_have_a_vote(
    machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = [Finding("ctl1", "members-missing", "2 of 3 have a vote", "start it")]
    # Whole before the first, half for a moment after it, half for good after the second.
    answers = iter([[], missing, [], [], *([missing] * 50)])
    monkeypatch.setattr(database, "half_database", lambda *_: next(answers))
    monkeypatch.setattr(database, "_POLL_SECONDS", 0)
    machines.waiting = {name: [OPENSSL] for name in ("ctl1", "login1", "db1")}
    inventory = write_site(tmp_path, MEMBERS)
    with pytest.raises(DeployError, match="ctl1: 2 of 3 have a vote") as problem:
        module.update(inventory, Options(), lambda _: True, most=Share(1), say=print)
    assert (problem.value.findings[0].reference, problem.value.findings[0].where) == (
        "update-stopped",
        "login1",
    )
    assert machines.done == ["install ctl1", "install login1"]
