"""Changes in batches: which nodes are in them, what comes before and after, and where they end."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deploy.engine import rolling as module
from deploy.engine.batches import Share, StoppedError
from deploy.engine.drains import Ledger
from deploy.engine.fit import Nodes
from deploy.engine.options import Options
from deploy.errors import DeployError, ExitCode
from deploy.judge.preview import Preview
from deploy.judge.summary import HostSummary
from deploy.run import drains as on_controller
from tests.unit.run.slurm import Slurm
from tests.unit.show.runs import result
from tests.unit.site.sites import write_site

SITE = "[slurm-master]\nctl1 ansible_host=10.0.0.1\n[slurm-node]\n" + "".join(
    f"node{number} ansible_host=10.0.0.{number + 1}\n" for number in (1, 2, 3, 4)
)
GOOD, BAD = HostSummary(ok=1), HostSummary(failed=1)


@dataclass
class World:
    """A cluster; node4 is new to Slurm."""

    place: Path
    slurm: Slurm = field(init=False)
    changing: list[str] = field(default_factory=list)
    failing: set[str] = field(default_factory=set)
    good: HostSummary = GOOD
    ran: list[str | None] = field(default_factory=list)
    unwell: dict[str, str] = field(default_factory=dict)
    is_new: bool = False
    trouble: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.slurm = Slurm(self.place)

    def preview(self, *_: object) -> Any:  # noqa: ANN401 - a part of a PlanOutcome
        changes = tuple(SimpleNamespace(result=result(name)) for name in self.changing)
        losses = ()
        made: Any = Preview(changes, losses, (), tuple(self.trouble), is_slurm_configured=not self.is_new)  # type: ignore[arg-type]
        return SimpleNamespace(preview=made)

    def deploy(self, _: Path, options: Options, *__: object) -> Any:  # noqa: ANN401 - a part of a Summary
        self.ran.append(options.limit)
        names = (options.limit or "").split(",")
        for name in names:
            if name.startswith("node"):
                is_served = name in self.slurm.reasons and name in self.changing
                assert not is_served or self.slurm.reasons[name].startswith("deploy: change by deploy")
        hosts = {name: BAD if name in self.failing else self.good for name in names}
        is_bad = any(host.is_bad for host in hosts.values())
        return SimpleNamespace(exit_code=ExitCode.FAILED if is_bad else ExitCode.OK, hosts=hosts)

    def go(self, most: str = "1", limit: str | None = None) -> ExitCode:
        inventory = write_site(self.place, SITE)
        display: Callable[[], Any] = lambda: None  # noqa: E731
        options = Options(limit=limit, batch=most)
        share = Share(int(most))
        came = module.deploy_in_batches(inventory, options, share, display, lambda: False, say=print)
        return came.exit_code


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    monkeypatch.setattr(on_controller, "_run", made.slurm.run)
    monkeypatch.setattr(on_controller, "LEDGER", tmp_path / "ledger/drains.json")
    monkeypatch.setenv("SUDO_USER", "alice")
    monkeypatch.setattr(module, "deploy_cluster", made.deploy)
    monkeypatch.setattr(module, "plan_cluster", made.preview)
    monkeypatch.setattr(
        Nodes, "fit", lambda _, names, __, **___: {n: why for n, why in made.unwell.items() if n in names}
    )

    def ask(_: Ledger, verb: str, __: object, arguments: Any) -> Any:  # noqa: ANN401 - JSON
        return getattr(on_controller, verb)(**arguments)

    monkeypatch.setattr(Ledger, "ask", ask)
    return made


def states(world: World) -> dict[str, str]:
    return {name: reason for name, reason in world.slurm.reasons.items() if reason}


def test_other_hosts_come_first_and_all_of_them_last(world: World) -> None:
    world.changing = ["ctl1", "node1", "node3", "node4"]
    assert world.go() is ExitCode.OK
    assert world.ran == ["ctl1,node2,node4", "node1", "node3", None]
    assert states(world) == {}


def test_where_no_node_changes_it_is_an_ordinary_run(world: World) -> None:
    world.changing = ["ctl1"]
    assert world.go() is ExitCode.OK
    world.changing, world.is_new = ["ctl1", "node1"], True
    assert world.go() is ExitCode.OK
    assert world.ran == [None, None]


def test_what_fails_before_the_nodes_leaves_them_as_they_were(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.changing, world.failing = ["ctl1", "node1", "node2"], {"ctl1"}
    assert world.go() is ExitCode.FAILED
    assert (len(world.ran), states(world)) == (1, {})
    assert "not begun, and as they were: node[1-2]" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["it does not converge", "it is not well"])
def test_a_bad_batch_is_the_last_and_the_same_goes_on(world: World, what: str) -> None:
    world.changing = ["node1", "node2", "node3"]
    if what == "it does not converge":
        world.failing = {"node2"}
    else:
        world.unwell = {"node2": "munge is failed"}
    with pytest.raises(StoppedError) as stopped:
        world.go()
    course = stopped.value.course
    assert (course.done, [*course.bad], course.left) == (("node1",), ["node2"], ("node3",))
    assert [*states(world)] == ["node2"]
    assert stopped.value.findings[-1].hint.endswith("inventory.ini --batch 1")
    # Put right by hand, nothing changes there any more.
    world.failing, world.unwell, world.changing = set(), {}, ["node3"]
    assert world.go() is ExitCode.OK
    assert states(world) == {}


def test_what_is_left_to_a_later_run_makes_no_node_bad(world: World) -> None:
    world.changing, world.failing = ["node1", "node2"], {"node2"}
    world.good = HostSummary(ok=1, pending=("it goes on as it is",))
    with pytest.raises(StoppedError) as stopped:
        world.go("2")
    assert [*stopped.value.course.bad] == ["node2"]


def test_without_a_preview_nothing_begins(world: World) -> None:
    world.trouble = [result("node1")]
    with pytest.raises(DeployError, match="preview-failed"):
        world.go()
    assert world.ran == []


def test_a_node_is_in_service_by_then(world: World) -> None:
    world.changing = ["node1", "node2"]
    seen: list[dict[str, str]] = []
    ordinary = world.deploy

    def watched(inventory: Path, options: Options, *more: object) -> Any:  # noqa: ANN401
        seen.append(states(world))
        return ordinary(inventory, options, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "deploy_cluster", watched)
        world.go()
    assert [[*each] for each in seen] == [[], ["node1"], ["node2"], []]
