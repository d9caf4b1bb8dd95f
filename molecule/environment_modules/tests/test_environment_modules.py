"""Users load modules wherever bash runs for them: at a login, in a command over SSH, in a script."""

import pytest

from molecule.conftest import Converge, On

SHELLS = {
    "login": ["su", "--login", "alice", "--command"],
    "command": ["su", "alice", "--command"],
    # By this variable bash knows that sshd runs it, and reads other files.
    "ssh": ["env", "SSH_CLIENT=192.0.2.1", "su", "alice", "--command"],
}
LOAD = "module load probe/2.0 && echo $PROBE ${PATH%%:*}"


def installed(on: On, machine: str, package: str) -> bool:
    command = ["dpkg-query", "--show", "--showformat=${db:Status-Status}", package]
    return on(machine, *command, check=False).stdout == "installed"


@pytest.fixture(scope="module", params=["lmod", "environment-modules"], autouse=True)
def implementation(request: pytest.FixtureRequest, on: On, converge: Converge) -> str:
    """Lmod is what the scenario converged to; the other one takes its place."""
    if not installed(on, "trixie", request.param):
        answer = converge(implementation=request.param)
        assert answer.returncode == 0, answer.stdout + answer.stderr
    return str(request.param)


@pytest.mark.parametrize("shell", SHELLS)
def test_user_loads_a_module(on: On, machine: str, shell: str) -> None:
    answer = on(machine, *SHELLS[shell], LOAD)
    assert answer.stdout == "/srv/shared/probe/2.0 /srv/shared/probe/2.0/bin\n"
    assert answer.stderr == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_script_of_a_user_loads_a_module(on: On, machine: str, shell: str) -> None:
    on(machine, "tee", "/home/alice/script", data=f"#!/bin/bash\n{LOAD}\n")
    on(machine, "chmod", "755", "/home/alice/script")
    assert on(machine, *SHELLS[shell], "/home/alice/script").stdout.startswith("/srv/shared/probe/2.0 ")


def test_script_with_the_environment_of_a_session_alone_loads_a_module(on: On, machine: str) -> None:
    """As a job has it that was submitted with --export=NONE."""
    environment = on(machine, "cat", "/etc/environment").stdout.split()
    command = ["env", "--ignore-environment", "PATH=/usr/bin:/bin", *environment]
    answer = on(machine, "setpriv", "--reuid=alice", "--clear-groups", *command, "bash", "-c", LOAD)
    assert answer.stdout.startswith("/srv/shared/probe/2.0 ")


def test_modules_of_the_shell_before_are_in_the_path_of_a_login_shell(
    on: On, machine: str, implementation: str
) -> None:
    """As in a job script with `bash -l`, submitted where modules are loaded."""
    on(machine, "tee", "/home/alice/script", data="#!/bin/bash -l\necho $PROBE $PATH\n")
    on(machine, "chmod", "755", "/home/alice/script")
    answer = on(machine, *SHELLS["command"], f"{LOAD} >/dev/null && /home/alice/script")
    # Lmod of Debian 12 points BASH_ENV to a file of its own, which does not load them again (README).
    is_in_path = (implementation, machine) != ("lmod", "bookworm")
    assert answer.stdout.startswith("/srv/shared/probe/2.0 /srv/shared/probe/2.0/bin:") == is_in_path
    assert answer.stderr == ""


def test_all_trees_are_searched_the_shared_one_first(on: On, machine: str) -> None:
    listing = on(machine, *SHELLS["command"], "module --terse avail probe 2>&1").stdout.splitlines()
    modules = [line.partition("(")[0].rstrip(": ") for line in listing]
    assert [line for line in modules if line in {"/srv/shared", "/opt/modulefiles"}] == [
        "/srv/shared",
        "/opt/modulefiles",
    ]
    assert {"probe/1.0", "probe/2.0"} <= set(modules)


def test_unload_takes_everything_back(on: On, machine: str) -> None:
    script = f"{LOAD} && module unload probe && echo ${{PROBE:-gone}} $PATH"
    assert on(machine, *SHELLS["command"], script).stdout.splitlines()[1].startswith("gone ")
    assert "/srv/shared" not in on(machine, *SHELLS["command"], script).stdout.splitlines()[1]


def test_a_login_says_nothing(on: On, machine: str, implementation: str) -> None:
    """The package that had to go leaves files behind, which would complain at every login."""
    answer = on(machine, "su", "--login", "alice", "--command", "true")
    assert answer.stdout + answer.stderr == ""
    assert installed(on, machine, implementation)


def test_software_without_a_module_file_has_one_and_the_name_alone_means_the_default(
    on: On, machine: str
) -> None:
    script = "module load mpi && echo ${PATH%%:*} $PROBE $MPI_NOTE && module load mpi/4.1; echo ${PATH%%:*}"
    lines = on(
        machine, *SHELLS["command"], f"{script}; module unload mpi; module load mpi/4.1; echo ${{PATH%%:*}}"
    )
    said = lines.stdout.splitlines()
    assert said[0] == "/srv/mpi-5.0/bin /opt/modulefiles/probe/1.0 a $note [with] signs"
    assert said[-1] == "/srv/mpi-4.1/bin"


def test_software_that_is_declared_no_more_has_none(
    on: On, converge: Converge, machine: str, implementation: str
) -> None:
    answer = converge(only=machine, tags="configure", software=[], implementation=implementation)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert on(machine, "find", "/opt/modulefiles", "-type", "f").stdout == "/opt/modulefiles/probe/1.0\n"
