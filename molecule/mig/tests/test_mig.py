"""GPUs are divided as declared, after a boot too, and a layout that a GPU refuses is said to be so."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

On = Callable[..., CompletedProcess[str]]

STATE = "/var/lib/stand-in-gpus.json"


@pytest.fixture(params=["bookworm", "trixie"])
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def converge(machine: str, layout: list[dict[str, object]]) -> CompletedProcess[str]:
    """The scenario's playbook once more, with another layout."""
    command = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        f"--inventory={os.environ['MOLECULE_INVENTORY_FILE']}",
        f"--limit=molecule-mig-{machine}",
        f"--extra-vars={json.dumps({'layout': layout})}",
        str(Path(__file__).parents[1] / "converge.yml"),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def instances(on: On, machine: str) -> list[list[str]]:
    """The instances of each GPU that programs can use."""
    gpus = json.loads(on(machine, "cat", STATE).stdout)
    return [gpus[index]["compute"] for index in sorted(gpus)]


def test_the_gpu_is_divided_and_the_other_is_whole(on: On, machine: str) -> None:
    assert instances(on, machine) == [["3g.40gb", "2g.20gb", "1g.10gb"], []]


def test_a_boot_divides_it_again(on: On, machine: str) -> None:
    on(machine, "rm", STATE)
    on(machine, "systemctl", "restart", "deploy-mig")
    assert instances(on, machine) == [["3g.40gb", "2g.20gb", "1g.10gb"], []]
    assert on(machine, "systemctl", "is-enabled", "deploy-mig").stdout == "enabled\n"


def test_another_layout_takes_the_place_of_the_first_and_too_much_is_refused(on: On, machine: str) -> None:
    answer = converge(machine, [{"devices": ["7g.80gb"]}])
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert instances(on, machine) == [["7g.80gb"], ["7g.80gb"]]
    answer = converge(machine, [{"gpus": [1], "devices": ["4g.40gb", "4g.40gb"]}])
    assert answer.returncode == 2
    assert "Insufficient Resources" in answer.stderr
