"""The way back of nodes: to which release, and for whom there is none."""

from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from deploy.engine import upgrade_back
from deploy.engine.upgrade import Walk
from deploy.errors import DeployError, error
from deploy.site.inventory import read_site
from tests.unit.site.sites import write_site

NEW, OLD = "26.05.5-1", "24.11.5-4"


class FakeWalk:
    """A walk that notes its steps."""

    def __init__(self, place: Path, before: dict[str, str]) -> None:
        self.run = SimpleNamespace(
            site=read_site(write_site(place)),
            inventory="inventory.ini",
            command=lambda verb: f"deploy {verb} x",
            say=print,
        )
        self.state = SimpleNamespace(
            wanted="26.05", before=before, ledger="the ledger", troubles=lambda _: {"node1": "silent"}
        )
        self.steps: list[tuple[Any, ...]] = []
        self.fails = self.is_short = False

    def reasons(self, names: Collection[str]) -> dict[str, list[tuple[str, str]]]:
        return {name: [("root", "upgrade to Slurm 26.05")] for name in names}

    def refuse_short_timeout(self) -> None:
        if self.is_short:
            raise error("upgrade-slurmd-timeout", "60 s", where="ctl1", hint="")

    def forget(self, names: Collection[str]) -> None:
        self.steps.append(("forget", *names))

    def step(self, group: str, hosts: Collection[str], *, back_to: str) -> None:
        if self.fails:
            raise error("upgrade-step-failed", "apt failed", where="node1", hint="")
        self.steps.append((group, *hosts, back_to))

    def waited(self, troubles: Any) -> Any:  # noqa: ANN401
        return troubles()

    def release(self, held: Any) -> None:  # noqa: ANN401
        self.steps.append(("release", *held))


def back(walk: FakeWalk, *names: str) -> upgrade_back.WentBack:
    return upgrade_back._Back(cast("Walk", walk), [*names]).whole()


def test_nodes_get_what_the_others_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walk = FakeWalk(tmp_path, {"ctl1": NEW, "login1": OLD, "node1": NEW, "node2": OLD})
    came: dict[str, Any] = {}

    def in_batches(_ledger: str, names: list[str], _most: Any, work: Any, _say: Any) -> None:  # noqa: ANN401
        came["waits"], came["bad"] = work.waits, [work.act(tuple(names)), work.check(tuple(names))]
        walk.fails = True
        came["failed"] = work.act(tuple(names))

    monkeypatch.setattr(upgrade_back, "in_batches", in_batches)
    assert back(walk, "node1") == upgrade_back.WentBack(("node1",), "24.11")
    assert walk.steps == [
        ("forget", "node1"),
        ("hosts", "node1", "24.11"),
        ("forget", "node1"),
        ("release", "node1"),
    ]
    assert came == {"waits": False, "bad": [{}, {"node1": "silent"}], "failed": {"node1": "apt failed"}}


@pytest.mark.parametrize(
    ("before", "name", "expected"),
    [
        (dict.fromkeys(("ctl1", "node1", "node2"), NEW), "node1", "every host has Slurm 26.05 already"),
        ({"ctl1": NEW, "login1": OLD, "node1": NEW}, "ctl1", "only compute nodes go back one by one"),
        ({"ctl1": NEW, "login1": OLD, "node1": NEW}, "login1", "only compute nodes go back one by one"),
        ({"ctl1": NEW, "node1": NEW, "node2": "22.05.8-4"}, "node1", "which takes no node of 22.05"),
    ],
)
def test_for_others_there_is_no_way_back(
    tmp_path: Path, before: dict[str, str], name: str, expected: str
) -> None:
    walk = FakeWalk(tmp_path, before)
    with pytest.raises(DeployError, match=expected):
        back(walk, name)
    assert walk.steps == []


def test_nothing_is_begun_where_jobs_could_be_lost(tmp_path: Path) -> None:
    walk = FakeWalk(tmp_path, {"ctl1": NEW, "login1": OLD, "node1": NEW, "node2": OLD})
    walk.is_short = True
    with pytest.raises(DeployError, match="60 s"):
        back(walk, "node1")
    assert walk.steps == []
