"""Every role is tried on real machines, by tests that can fail."""

import importlib.util
import runpy
import sys
from pathlib import Path
from types import ModuleType

import pytest

from deploy.plan.build import build_plan
from deploy.site.inventory import read_site
from tests.contract.content import ROOT, read_yaml, role_directories
from tests.contract.scenarios import toothless

PLAIN = """
[slurm-master]
ctl1
[slurm-login]
login1
[slurm-node]
node1
[slurm-metric]
[slurm-cluster:children]
slurm-master
slurm-login
slurm-node
[slurm-node:vars]
nvidia_driver_source=none
"""
SCENARIOS = sorted(path.parent for path in ROOT.glob("molecule/*/molecule.yml"))


@pytest.mark.parametrize("role", role_directories(), ids=lambda role: role.name)
def test_role_has_a_scenario(role: Path) -> None:
    assert (ROOT / "molecule" / role.name / "molecule.yml").exists()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_scenario_can_fail(scenario: Path) -> None:
    assert list(toothless(scenario)) == []


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_scenario_runs_with_the_connection_that_is_installed(scenario: Path) -> None:
    # Only mitogen brings a connection to containers; another strategy looks for a collection, which
    # nothing installs.
    for playbook in ("prepare.yml", "converge.yml", "verify.yml"):
        path = scenario / playbook
        plays = read_yaml(path) if path.exists() else []
        assert not [play["name"] for play in plays if "strategy" in play]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, "verifies nothing"),
        ({"tests/test_x.py": "def test_nothing():\n    pass\n"}, "test_nothing cannot fail"),
        ({"tests/test_x.py": "def test_true():\n    assert True\n"}, "test_true cannot fail"),
        ({"tests/test_x.py": "@pytest.mark.skip\ndef test_late():\n    assert x\n"}, "test_late is skipped"),
        ({"verify.yml": "- hosts: all\n  tasks: []\n"}, "asserts nothing"),
        ({"verify.yml": "- tasks: [{ansible.builtin.assert: {that: true}}]\n"}, "always true"),
        ({"verify.yml": "- tasks: [{ansible.builtin.assert: {that: [true]}}]\n"}, "always true"),
    ],
)
def test_toothless_scenario_is_noticed(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    for name, text in {"molecule.yml": "", "converge.yml": "", **files}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert expected in "\n".join(toothless(tmp_path))


def test_scenario_with_teeth_passes(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").write_text("def test_it(on):\n    assert on('a', 'b').stdout == 'c'\n")
    for name in ("molecule.yml", "converge.yml"):
        (tmp_path / name).write_text("")
    assert list(toothless(tmp_path)) == []


def test_make_test_tries_the_roles_of_every_cluster(tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.ini"
    inventory.write_text(PLAIN)
    site = read_site(inventory)
    contract = {node.name: {"cpus": 2, "memory_mb": 900, "gpus": []} for node in site.nodes}
    plan = build_plan(site, contract)
    roles = {role for step in plan.steps for role in step.phase.roles}
    assert runpy.run_path(str(ROOT / "molecule/run.py"))["OF_EVERY_CLUSTER"] == roles


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """molecule/run.py, which is no package's: that of Molecule has the name."""
    spec = importlib.util.spec_from_file_location("runs", ROOT / "molecule/run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "runs", module)
    spec.loader.exec_module(module)
    for name in ("ONCE_MORE", "BEGIN_UNTIL"):
        monkeypatch.delenv(name, raising=False)
    return module


@pytest.mark.parametrize(
    ("once_more", "outcomes", "code", "said"),
    [
        ("", {"a": "-", "b": "+"}, 1, "1 passed, 1 failed, 0 not run\n"),
        ("1", {"a": "-+", "b": "+"}, 0, "2 passed, 0 failed, 0 not run\nFLAKY a: it failed, and passed"),
        ("1", {"a": "--", "b": "+"}, 1, "1 passed, 1 failed, 0 not run\n"),
        ("1", {"a": "-?", "b": "?"}, 1, "0 passed, 1 failed, 1 not run\nNOT RUN, no time was left"),
        ("1", {"a": "-", "b": "-", "c": "-"}, 1, "0 passed, 3 failed, 0 not run\n"),
    ],
    ids=["as typed", "chance", "a fault", "no time", "many"],
)
def test_of_scenarios_that_failed_a_few_are_run_once_more(
    runs: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    once_more: str,
    outcomes: dict[str, str],
    code: int,
    said: str,
) -> None:
    left = {name: list(signs) for name, signs in outcomes.items()}

    def run(name: str, *, every_release: bool) -> object:
        sign = left[name].pop(0)
        assert every_release
        return runs.Result(name, sign == "+", 1.0, "why", was_run=sign != "?")

    monkeypatch.setattr(runs, "run", run)
    monkeypatch.setenv("ONCE_MORE", once_more)
    assert runs.main([*outcomes], "all", every_release=False) == code
    assert said in capsys.readouterr().out
    assert not any(left.values())
