"""A new machine under a node's name: whose key is believed, and what is read anew."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deploy.engine import drains, fit, proving
from deploy.engine import replace as module
from deploy.engine.batches import StoppedError
from deploy.engine.drains import Way
from deploy.engine.options import Options
from deploy.engine.replace import Asked
from deploy.errors import DeployError, ExitCode
from deploy.run import drains as on_controller
from deploy.run.host_key import HostKey, Known
from deploy.run.ssh import Unanswered
from deploy.show.plain import PlainDisplay
from deploy.site.hardware import read_contract
from deploy.site.inventory import read_site
from tests.unit.run.slurm import Slurm
from tests.unit.site.sites import write_site

SITE = "[slurm-master]\nctl1 ansible_host=10.0.0.1\n[slurm-node]\nnode1 ansible_host=10.0.0.2\n"
CONTRACT = "node1: {cpus: 2, memory_mb: 512, gpus: []}\nnode2: {cpus: 4, memory_mb: 512, gpus: []}\n"
_HOURS = 0.5
OLD, NEW = HostKey("ssh-ed25519", "b2xk"), HostKey("ssh-ed25519", "bmV3")


class World:
    """One node with a new host key; what was accepted and deployed."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.slurm = Slurm(place)
        self.known = {OLD}
        self.offers: tuple[HostKey, ...] | Unanswered = (NEW,)
        self.exit_code = ExitCode.OK
        self.deployed: list[str | None] = []
        self.asked: list[str] = []
        self.says_yes = False
        self.spoiled: dict[str, tuple[str, ...]] = {}

    def jobs(self, *_: object, burn_in_hours: float) -> dict[str, tuple[str, ...]]:
        assert (self.slurm.reasons["node1"], len(self.slurm.reservations)) == ("", 1)
        assert burn_in_hours == _HOURS
        return self.spoiled

    def accept(self, entry: Known, key: HostKey) -> None:
        assert entry.keys == frozenset(self.known)
        # Where an earlier attempt failed, what that said stays until this one has ended.
        assert self.slurm.reasons["node1"].startswith("deploy: replace: x")
        self.known = {key}

    def deploy(self, _: Path, options: Options, *__: object) -> Any:  # noqa: ANN401 - a part of a Summary
        assert "node1" not in read_contract(read_site(self.place / "inventory.ini"))
        self.deployed.append(options.limit)
        return SimpleNamespace(exit_code=self.exit_code)

    def confirms(self, _: str, fingerprint: str) -> bool:
        self.asked.append(fingerprint)
        return self.says_yes

    def go(self, fingerprint: str | None = None) -> bool:
        asked = Asked("x", Way(), fingerprint, self.confirms, lambda: False, _HOURS)
        display = PlainDisplay(print)
        inventory = self.place / "inventory.ini"
        came = module.replace_node(inventory, "node1", asked, Options(), display=display, say=print)
        return came.is_in_service


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    write_site(tmp_path, SITE)
    (tmp_path / "hardware.yml").write_text(CONTRACT)
    made = World(tmp_path)
    monkeypatch.setattr(on_controller, "_run", made.slurm.run)
    monkeypatch.setattr(on_controller, "LEDGER", tmp_path / "ledger/drains.json")
    monkeypatch.setenv("SUDO_USER", "alice")
    monkeypatch.setattr(module, "deploy_cluster", made.deploy)
    monkeypatch.setattr(proving, "failing_jobs", made.jobs)
    monkeypatch.setattr("deploy.run.host_key.offered", lambda _: made.offers)
    known = lambda _: Known("10.0.0.2", tmp_path / "known", frozenset(made.known))  # noqa: E731
    monkeypatch.setattr("deploy.run.host_key.known", known)
    monkeypatch.setattr("deploy.run.host_key.accept", made.accept)
    monkeypatch.setattr(fit, "ask", lambda questions, *_, **__: {name: [] for name in questions})

    def ask(questions: Mapping[str, Any], *_: object, **__: object) -> dict[str, Any]:
        ((name, (verb, arguments)),) = questions.items()
        return {name: getattr(on_controller, verb)(**arguments)}

    monkeypatch.setattr(drains, "ask", ask)
    return made


def test_a_key_of_the_typed_fingerprint_is_accepted_and_the_contract_read_anew(world: World) -> None:
    assert world.go(NEW.fingerprint)
    assert (world.known, world.deployed, world.asked) == ({NEW}, ["node1"], [])
    assert [*read_contract(read_site(world.place / "inventory.ini"))] == ["node2"]


def test_without_a_fingerprint_somebody_is_asked(world: World) -> None:
    world.says_yes = True
    assert world.go()
    assert (world.known, world.asked) == ({NEW}, [NEW.fingerprint])


def test_a_machine_with_the_known_key_asks_nobody(world: World) -> None:
    world.offers = (OLD,)
    assert world.go()
    assert (world.known, world.asked, world.deployed) == ({OLD}, [], ["node1"])


@pytest.mark.parametrize("fingerprint", [None, OLD.fingerprint])
def test_a_key_that_nobody_confirms_changes_nothing(world: World, fingerprint: str | None) -> None:
    with pytest.raises(StoppedError) as stopped:
        world.go(fingerprint)
    assert [it.reference for it in stopped.value.findings] == ["host-key-not-accepted", "batch-stopped"]
    assert stopped.value.findings[1].hint.endswith("inventory.ini node1 --reason x --burn-in 0.5")
    assert (world.known, world.deployed) == ({OLD}, [])
    assert "node1" in read_contract(read_site(world.place / "inventory.ini"))
    assert world.slurm.reasons["node1"].startswith("deploy: replace: x: ")
    world.says_yes = True
    assert world.go()
    assert world.slurm.reasons["node1"] == ""


def test_a_machine_that_is_silent_stays_drained(world: World) -> None:
    world.offers = Unanswered("No route to host")
    with pytest.raises(StoppedError, match="it does not answer: No route to host"):
        world.go()


def test_a_run_that_fails_leaves_it_drained(world: World) -> None:
    world.exit_code = ExitCode.FAILED
    with pytest.raises(StoppedError, match="it did not converge"):
        world.go(NEW.fingerprint)
    assert (
        world.slurm.reasons["node1"] == "deploy: replace: x: it did not converge: see deploy report (alice)"
    )


def test_a_node_on_which_jobs_fail_stays_drained(world: World) -> None:
    world.spoiled = {"node1": ("check job: it ran on another",)}
    with pytest.raises(StoppedError, match="check job: it ran on another"):
        world.go(NEW.fingerprint)
    said = "deploy: replace: x: check job: it ran on another (alice)"
    assert (world.slurm.reasons["node1"], world.slurm.reservations) == (said, {})


@pytest.mark.parametrize("text", ["", "MD5:aa:bb", "SHA256:short", NEW.fingerprint + "="])
def test_what_is_no_fingerprint_begins_nothing(world: World, text: str) -> None:
    with pytest.raises(DeployError, match="invalid-option"):
        world.go(text)
    assert world.slurm.reasons["node1"] == ""


def test_no_node_is_renamed(world: World) -> None:
    refusal = module.refuse_rename(world.place / "inventory.ini", "node1", "gpu1")
    assert (refusal.findings[0].reference, refusal.exit_code) == ("node-not-renamed", ExitCode.BAD_INPUT)
    assert "deploy node remove" in refusal.findings[0].hint
