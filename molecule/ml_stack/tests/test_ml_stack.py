"""Users load an environment and use what is in it; what they use never changes under them."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

On = Callable[..., CompletedProcess[str]]

MACHINES = ["bookworm", "trixie"]


def converge(*variables: str) -> CompletedProcess[str]:
    command = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        f"--inventory={os.environ['MOLECULE_INVENTORY_FILE']}",
        *(f"--extra-vars={variable}" for variable in variables),
        "--tags=configure",
        str(Path(__file__).parents[1] / "converge.yml"),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def as_alice(on: On, machine: str, script: str) -> str:
    return on(machine, "su", "--login", "alice", "--command", script).stdout


@pytest.mark.parametrize("machine", MACHINES)
def test_user_loads_the_environment(on: On, machine: str) -> None:
    script = "module load torch && tinytorch && python -c 'import tinytorch; print(tinytorch.__file__)'"
    version, file = as_alice(on, machine, script).splitlines()
    assert version == "1.0"
    assert file.startswith("/srv/ml/environments/torch-2026a-")
    assert (
        as_alice(on, machine, "module load torch && module unload torch && which python3")
        == "/usr/bin/python3\n"
    )


@pytest.mark.parametrize("machine", MACHINES)
def test_user_cannot_change_it(on: On, machine: str) -> None:
    script = "module load torch && touch $VIRTUAL_ENV/bin/python"
    answer = on(machine, "su", "--login", "alice", "--command", script, check=False)
    assert "Permission denied" in answer.stderr


def test_what_cannot_be_built_is_said_and_leaves_nothing(on: On) -> None:
    answer = converge("tinytorch=9.9")
    assert answer.returncode == 2
    assert "No matching distribution found for tinytorch==9.9" in answer.stdout + answer.stderr
    for machine in MACHINES:
        assert len(on(machine, "ls", "/srv/ml/environments").stdout.split()) == 1
        assert as_alice(on, machine, "module load torch && tinytorch") == "1.0\n"


def test_another_version_is_another_environment_and_the_old_one_stays(on: On) -> None:
    before = {
        machine: as_alice(on, machine, "module load torch && echo $VIRTUAL_ENV") for machine in MACHINES
    }
    answer = converge("tinytorch=2.0")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    for machine in MACHINES:
        assert as_alice(on, machine, "module load torch && tinytorch") == "2.0\n"
        # A job that loaded the module before still has this.
        assert as_alice(on, machine, f"{before[machine].strip()}/bin/tinytorch") == "1.0\n"


def test_a_host_that_does_not_see_the_environments_is_told(on: On) -> None:
    assert converge("builds=false").returncode == 0
    on("trixie", "mv", "/srv/ml", "/srv/elsewhere")
    try:
        answer = converge("builds=false")
    finally:
        on("trixie", "mv", "/srv/elsewhere", "/srv/ml")
    said = answer.stdout + answer.stderr
    assert "/srv/ml/modulefiles/torch/2026a is not there. Is /srv/ml in storage that this host mounts" in said
    assert "fatal: [molecule-ml-stack-bookworm]" not in said
