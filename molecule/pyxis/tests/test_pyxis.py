"""The plugin is built for the Slurm that is there, reaches jobs by way of the controller, and follows it."""

import re
from collections.abc import Iterator
from subprocess import CompletedProcess

import pytest

from molecule.conftest import MACHINES, Converge, On

STATUS = "/var/lib/dpkg/status"


def as_alice(on: On, machine: str, *words: str) -> CompletedProcess[str]:
    user = ["timeout", "30", "setpriv", "--reuid=alice", "--regid=alice", "--init-groups"]
    return on(machine, *user, *words)


def package(on: On, machine: str) -> str:
    """The version of the installed package."""
    return on(machine, "dpkg-query", "--show", "--showformat=${Version}", "slurm-pyxis").stdout


def slurm(on: On, machine: str) -> str:
    shown = on(machine, "dpkg-query", "--show", "--showformat=${source:Upstream-Version}", "slurm-client")
    return shown.stdout


def test_srun_carries_the_option_into_the_job(on: On, idle: str) -> None:
    answer = as_alice(on, idle, "srun", "--quiet", "--chdir=/", "--container-image=x.sqsh", "true").stdout
    assert answer.splitlines() == [
        "before task 0 of alice in prolog_task",
        f"container_scope=job image x.sqsh on molecule-pyxis-{idle}",
    ]


def test_sbatch_carries_it_too(on: On, idle: str) -> None:
    batch = ["sbatch", "--wait", "--quiet", "--chdir=/home/alice", "--output=job", "--container-image=y.sqsh"]
    as_alice(on, idle, *batch, "--wrap=true")
    assert f"image y.sqsh on molecule-pyxis-{idle}\n" in on(idle, "cat", "/home/alice/job").stdout


def test_a_job_without_the_option_is_left_alone(on: On, idle: str) -> None:
    said = as_alice(on, idle, "srun", "--quiet", "--chdir=/", "echo", "plain").stdout
    assert said == "before task 0 of alice in prolog_task\nplain\n"


def test_what_a_program_says_before_a_task_is_set_there(on: On, idle: str) -> None:
    shown = 'echo "[$PLACE] $SLURM_LOCALID_WAS [$TAKEN_AWAY] [$SLURM_SCRIPT_CONTEXT]"'
    said = as_alice(
        on, idle, "env", "TAKEN_AWAY=there", "srun", "--quiet", "--chdir=/", "-n2", "-O", "sh", "-c", shown
    ).stdout
    assert sorted(said.splitlines()) == [
        "[/work/alice is = here ] 0 [] []",
        "[/work/alice is = here ] 1 [] []",
        "before task 0 of alice in prolog_task",
        "before task 1 of alice in prolog_task",
    ]


def test_a_task_does_not_start_when_the_program_fails(on: On, idle: str) -> None:
    user = ["timeout", "30", "setpriv", "--reuid=alice", "--regid=alice", "--init-groups"]
    answer = on(idle, *user, "env", "FAIL_BEFORE=yes", "srun", "--chdir=/", "echo", "started", check=False)
    assert answer.returncode != 0
    assert "started" not in answer.stdout
    assert "task_prolog: /usr/local/lib/before-tasks failed, status 3" in answer.stderr


def test_node_has_the_plugins_line_from_the_controller_alone(on: On, machine: str) -> None:
    assert (
        "required spank_pyxis.so" in on(machine, "cat", "/var/spool/slurmd/conf-cache/plugstack.conf").stdout
    )
    assert (
        f"--conf-server molecule-pyxis-{machine}" in on(machine, "ps", "-C", "slurmd", "-o", "args=").stdout
    )


def test_slurm_does_not_leave_the_plugin_behind(on: On, machine: str) -> None:
    assert f"+slurm{slurm(on, machine)}+" in package(on, machine)
    depends = on(machine, "dpkg-query", "--show", "--showformat=${Depends}", "slurm-pyxis").stdout
    assert f"slurm-client (>= {slurm(on, machine)})" in depends
    assert re.search(r"slurm-client \(<< \d+\.\d+\.\d+~\)", depends)


def test_it_was_built_by_an_ordinary_user_and_leaves_nothing(on: On, machine: str) -> None:
    files = on(machine, "dpkg-query", "--listfiles", "slurm-pyxis").stdout.split()
    plugin, own = sorted(file for file in files if file.endswith(".so"))
    assert plugin.endswith("/slurm-wlm/spank_pyxis.so")
    assert own.endswith("/slurm-wlm/spank_task_prolog.so")
    assert on(machine, "stat", "--format=%U %a", plugin, own).stdout == "root 644\nroot 644\n"
    assert on(machine, "grep", "--count", "--text", "built by nobody", plugin).stdout == "1\n"
    assert on(machine, "sh", "-c", "ls /var/tmp").stdout.count("spank-") == 0


@pytest.fixture
def newer_slurm(on: On, converge: Converge) -> Iterator[dict[str, str]]:
    """Slurm's packages in another version, as far as dpkg knows; its version by machine."""
    versions = {}
    for name in MACHINES:
        found = slurm(on, name)
        head, _, last = found.rpartition(".")
        versions[name] = f"{head}.{int(last) + 1}"
        on(name, "cp", "--preserve", STATUS, f"{STATUS}.before")
        on(name, "sed", "--in-place", f"s/{found}-/{versions[name]}-/g", STATUS)
        # As apt does with a package that holds Slurm to the old version.
        on(name, "dpkg", "--remove", "slurm-pyxis")
    yield versions
    for name in MACHINES:
        on(name, "mv", f"{STATUS}.before", STATUS)
    answer = converge()
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_another_slurm_gets_another_plugin(on: On, converge: Converge, newer_slurm: dict[str, str]) -> None:
    answer = converge()
    assert answer.returncode == 0, answer.stdout + answer.stderr
    for name, version in newer_slurm.items():
        assert f"+slurm{version}+" in package(on, name)


def test_archive_with_another_checksum_is_refused(on: On, converge: Converge) -> None:
    before = {name: package(on, name) for name in MACHINES}
    answer = converge(checksum="0" * 64, source_version="2.0")
    assert answer.returncode == 2, answer.stdout + answer.stderr
    said = "did not match 0{64}; it was [0-9a-f]{64}"
    assert sorted(re.findall(rf"fatal: \[molecule-pyxis-(\w+)\].*{said}", answer.stderr)) == MACHINES
    assert {name: package(on, name) for name in MACHINES} == before


def test_run_that_does_not_reach_all_hosts_adds_no_plugin(on: On, converge: Converge) -> None:
    line = "required spank_other.so"
    known = [
        "required spank_task_prolog.so /usr/local/lib/before-tasks",
        "required spank_pyxis.so container_scope=job",
    ]
    both = [*known, line]
    answer = converge(slurmctld_plugstack=both, slurmctld_plugstack_not_added=both)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    for name in MACHINES:
        lines = on(name, "cat", "/etc/slurm/plugstack.conf").stdout.splitlines()
        assert lines[1:] == known
