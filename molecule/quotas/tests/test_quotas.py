"""People can ask for their limits; a file system without quotas is refused, with what to do."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

On = Callable[..., CompletedProcess[str]]

MACHINES = ["bookworm", "trixie"]


@pytest.mark.parametrize("machine", MACHINES)
def test_people_may_ask(on: On, machine: str) -> None:
    assert on(machine, "runuser", "--user=alice", "--", "show-quotas").stdout == "no limits are set for you\n"
    assert on(machine, "show-quotas", "--limits").stdout == ""
    assert on(machine, "setquota", "--version", check=False).stdout.startswith("Quota utilities")


def test_a_file_system_without_quotas_is_refused_with_what_to_do() -> None:
    wanted = {"filesystems": [{"path": "/dev/shm", "each_user": {"space": "1G"}}]}
    command = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        f"--inventory={os.environ['MOLECULE_INVENTORY_FILE']}",
        f"--extra-vars={json.dumps(wanted)}",
        "--tags=configure",
        str(Path(__file__).parents[1] / "converge.yml"),
    ]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 2, answer.stdout + answer.stderr
    said = r"fatal: \[molecule-quotas-(\w+)\].*/dev/shm has no user quotas.*tune2fs -O quota"
    assert sorted(re.findall(said, answer.stderr)) == MACHINES
