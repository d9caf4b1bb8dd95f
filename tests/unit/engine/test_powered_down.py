"""Nodes that Slurm has switched off are left out of a run, and nothing is wrong with them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploy.engine import powered_down, records
from deploy.engine.options import Options
from deploy.engine.run import opened
from deploy.engine.secrets import refuse_new_secrets_for_some
from deploy.errors import DeployError
from deploy.run.ssh import Login, Unanswered
from deploy.site.inventory import Site, read_site
from tests.unit.engine.machines import Machines, machines
from tests.unit.site.sites import write_site

__all__ = ["machines"]
_HARDWARE = "slurmd_hardware: {cpus: 4, memory_mb: 8000, gpus: []}\n"
_PROGRAMS = 'slurmctld_suspend_program: {text: "#!/bin/sh"}\nslurmctld_resume_program: {text: "#!/bin/sh"}\n'
_LOST = Unanswered("No route to host")

Said = dict[str, Any]


def _site(directory: Path, kind: str) -> Path:
    files = {
        "group_vars/slurm-node.yml": f"{_HARDWARE}slurmd_power_saving: {kind}\n",
        "group_vars/all.yml": _PROGRAMS,
    }
    return write_site(directory, files=files)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Said:
    """By host what it answers."""
    answers: Said = {}

    def ask(questions: Mapping[str, Any], *_: object, **__: object) -> dict[str, Any]:
        return {name: answers.get(name, _LOST) for name in questions}

    monkeypatch.setattr(powered_down, "ask", ask)
    return answers


def _away(site: Site, *named: str) -> set[str]:
    return {*powered_down.powered_down(site, Login(), named or None)}


@pytest.mark.parametrize(
    ("state", "is_away"),
    [
        (["IDLE", "POWERED_DOWN"], True),
        (["IDLE", "POWERING_DOWN"], True),
        (["ALLOCATED", "NOT_RESPONDING", "POWERING_UP"], True),
        (["DOWN", "POWERED_DOWN"], True),
        (["MIXED", "POWER_DOWN"], False),
        (["DOWN", "NOT_RESPONDING"], False),
        (["IDLE"], False),
    ],
)
def test_slurm_says_which(tmp_path: Path, said: Said, state: list[str], is_away: bool) -> None:  # noqa: FBT001
    said["ctl1"] = {"node1": state, "node2": ["IDLE"]}
    site = read_site(_site(tmp_path, "machine"))
    assert _away(site) == ({"node1"} if is_away else set())
    assert _away(site, "node2") == set()


@pytest.mark.parametrize(("kind", "away"), [("machine", set()), ("cloud", {"node1"})])
@pytest.mark.parametrize("known", [{}, {"node1": ["DOWN", "NOT_RESPONDING"], "node2": ["IDLE"]}])
def test_before_slurm_knows_them_as_such_cloud_nodes_need_not_be_there(
    tmp_path: Path, said: Said, kind: str, away: set[str], known: dict[str, list[str]]
) -> None:
    """A machine that cannot be reached is a fault, as ever."""
    said |= {"ctl1": known, "node2": {}}
    assert _away(read_site(_site(tmp_path, kind))) == away
    said["node1"] = Unanswered("ansible_password", is_by_choice=True)
    assert _away(read_site(tmp_path / "inventory.ini")) == set()


def test_a_site_without_such_nodes_asks_nobody(tmp_path: Path) -> None:
    assert _away(read_site(write_site(tmp_path))) == set()


def test_a_run_says_whom_it_leaves_out(tmp_path: Path, said: Said) -> None:
    said["ctl1"] = {"node1": ["IDLE", "POWERED_DOWN"], "node2": ["IDLE"]}
    with opened(_site(tmp_path, "machine"), Options()) as run:
        assert run.away == {"node1"}
        assert run.named is None
        assert run.hosts == ("ctl1", "login1", "node2")
        (finding,) = run.warnings
    assert str(finding).startswith("node1: warning: left out: Slurm has switched it off")
    assert finding.reference == "node-powered-down"


def test_what_goes_off_before_a_run_holds_the_nodes_is_left_out_too(tmp_path: Path, said: Said) -> None:
    said["ctl1"] = {"node1": ["IDLE"], "node2": ["IDLE"]}
    with opened(_site(tmp_path, "machine"), Options()) as run:
        assert run.narrowed() is run
        said["ctl1"]["node1"] = ["IDLE", "POWERING_DOWN"]
        narrowed = run.narrowed()
        assert narrowed.away == {"node1"}
        assert narrowed.hosts == ("ctl1", "login1", "node2")
        assert narrowed.narrowed() is narrowed


def test_what_is_done_with_nodes_one_by_one_passes_those_by_that_are_off(tmp_path: Path, said: Said) -> None:
    said["ctl1"] = {"node1": ["IDLE", "POWERED_DOWN"], "node2": ["IDLE"]}
    told: list[str] = []
    with opened(_site(tmp_path, "machine"), Options()) as run:
        there = replace(run, say=told.append).those_on(["node1", "node2"], "node reboot")
    assert there == ["node2"]
    (text,) = told
    assert text.startswith("node1: warning: left out: Slurm has switched it off")
    assert "-> deploy node reboot " in text


def test_a_run_works_on_what_is_there_when_it_holds_the_nodes(
    tmp_path: Path, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[set[str]] = []

    def power(questions: Mapping[str, Any], *_: object, **__: object) -> dict[str, Any]:
        off = ["IDLE", "POWERED_DOWN"] if machines.locked else ["IDLE"]
        return {name: {"node1": off, "node2": ["IDLE"]} for name in questions}

    def look(questions: Mapping[str, Any], *_: object, **__: object) -> dict[str, Any]:
        looked.append({name for name, (verb, _) in questions.items() if verb == "look"})
        return machines.ask(questions)

    monkeypatch.setattr(powered_down, "ask", power)
    monkeypatch.setattr(records, "ask", look)
    summary = machines.run(_site(tmp_path, "machine"), lambda *_: True)
    assert looked[:2] == [{"ctl1", "login1", "node1", "node2"}, {"ctl1", "login1", "node2"}]
    assert [text for text in summary.warnings if text.startswith("node1: warning: left out")]


@pytest.mark.parametrize(("kind", "is_refused"), [("machine", True), ("cloud", False)])
def test_no_new_key_passes_a_machine_by(tmp_path: Path, said: Said, kind: str, is_refused: bool) -> None:  # noqa: FBT001
    """Cloud nodes get theirs with their image."""
    said["ctl1"] = {"node1": ["IDLE", "POWERED_DOWN"], "node2": ["IDLE"]}
    with opened(_site(tmp_path, kind), Options(new_secrets=True)) as run:
        if not is_refused:
            refuse_new_secrets_for_some(run)
            return
        with pytest.raises(DeployError, match="while node1 cannot be reached"):
            refuse_new_secrets_for_some(run)


def test_a_run_on_all_is_no_limited_one(tmp_path: Path, said: Said) -> None:
    said["ctl1"] = {"node1": ["IDLE"], "node2": ["IDLE"]}
    with opened(_site(tmp_path, "machine"), Options()) as run:
        assert run.limit is None
        assert run.warnings == ()
