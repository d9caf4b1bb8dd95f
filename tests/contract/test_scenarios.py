"""Every role is tried on real machines, by tests that can fail."""

import runpy
from pathlib import Path

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
