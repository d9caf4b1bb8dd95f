"""playbooks/slurm-validation.yml: `deploy validate` for those who type ansible-playbook."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.site.sites import write_site

PLAYBOOK = Path(__file__).parents[2] / "playbooks" / "slurm-validation.yml"
PROGRAMS = Path(sys.executable).parent

FOR_OTHERS = """\
ansible_become: true
ansible_python_interpreter: /nowhere/python3
ansible_ssh_private_key_file: "{{ inventory_dir }}/key"
"""
"""What an inventory says of all hosts, and is not true of this machine."""


def played(inventory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}", "ANSIBLE_NOCOLOR": "1"}
    return subprocess.run(
        [PROGRAMS / "ansible-playbook", "--inventory", inventory, PLAYBOOK, *options],
        cwd=inventory.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def stub(tmp_path: Path, code: int) -> list[str]:
    """A program in the place of deploy that says with what it was called."""
    program = tmp_path / "stub"
    program.write_text(f'#!/bin/sh\necho "called with: $*"\necho "  -> a hint"\nexit {code}\n')
    program.chmod(0o755)
    given = {
        "slurm_validation_program": str(program),
        "slurm_validation_options": ["--quick", "--only", "a b"],
    }
    return ["--extra-vars", json.dumps(given)]


def test_a_wrong_site_is_a_failed_task_with_the_message(tmp_path: Path) -> None:
    inventory = write_site(tmp_path, files={"validation.yml": "slow_node_ration: 2\n"})
    done = played(inventory)
    assert done.returncode == 2, done.stdout
    assert "slow_node_ration is not a threshold, did you mean slow_node_ratio?" in done.stdout
    assert "[invalid-thresholds]" in done.stdout.partition("TASK [Fail when it fails]")[2]


@pytest.mark.parametrize(("code", "failed"), [(0, 0), (1, 2)])
def test_it_ends_as_the_validation_does(tmp_path: Path, code: int, failed: int) -> None:
    inventory = write_site(tmp_path, files={"group_vars/all.yml": FOR_OTHERS})
    done = played(inventory, *stub(tmp_path, code))
    assert done.returncode == failed, done.stdout
    assert f"called with: validate {inventory} --quick --only a b" in done.stdout
    assert ("FAILED!" in done.stdout) is bool(failed)


def test_it_runs_in_check_mode_too(tmp_path: Path) -> None:
    done = played(write_site(tmp_path), *stub(tmp_path, 1), "--check")
    assert done.returncode == 2, done.stdout


def test_two_inventories_are_refused(tmp_path: Path) -> None:
    inventory = write_site(tmp_path)
    done = played(inventory, "--inventory", "other,", *stub(tmp_path, 0))
    assert done.returncode == 2
    assert "takes one inventory with -i, and there are 2" in done.stdout


def test_without_the_program_it_says_so(tmp_path: Path) -> None:
    done = played(write_site(tmp_path), "--extra-vars", "slurm_validation_program=/nowhere/deploy")
    assert done.returncode == 2
    assert "/nowhere/deploy cannot be run" in done.stdout.partition("TASK [Fail when it fails]")[2]
