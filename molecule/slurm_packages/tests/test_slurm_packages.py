"""Every component is there, nothing beside it, and nothing was started on the way."""

import pytest

from molecule.conftest import On

VERSIONS = {"bookworm": "22.05.", "trixie": "24.11."}
# Without a configuration, this is what each program has to say.
WORDS = {
    "slurmctld": "slurm-wlm ",
    "slurmd": "slurm-wlm ",
    "slurmdbd": "StorageType must be specified",
    "sinfo": "Could not establish a configuration source",
    "sackd": "usage:",
}
INSTALLED = [
    *(("bookworm", name) for name in ("slurmctld", "slurmdbd", "slurmd", "sinfo")),
    *(("trixie", name) for name in ("slurmctld", "slurmdbd", "slurmd", "sinfo", "sackd")),
]
UNITS = [*(pair for pair in INSTALLED if pair[1] != "sinfo"), ("bookworm", "munge"), ("trixie", "munge")]


@pytest.mark.parametrize(("machine", "program"), INSTALLED)
def test_program_runs(on: On, machine: str, program: str) -> None:
    answer = on(machine, program, "-V", check=False)
    assert WORDS[program] in answer.stdout + answer.stderr


def test_version_is_the_one_of_the_release(on: On, machine: str) -> None:
    assert on(machine, "slurmd", "-V").stdout.startswith(f"slurm-wlm {VERSIONS[machine]}")


@pytest.mark.parametrize(("machine", "unit"), UNITS)
def test_package_started_no_daemon(on: On, machine: str, unit: str) -> None:
    assert on(machine, "systemctl", "show", unit, "--property=LoadState", "--value").stdout == "loaded\n"
    assert on(machine, "systemctl", "is-active", unit, check=False).stdout == "inactive\n"
    # A unit that systemd was asked to start has left a line, even when a condition kept it from starting.
    assert on(machine, "journalctl", "--quiet", "--output=cat", f"--unit={unit}").stdout == ""


def test_packages_that_are_only_recommended_stay_away(on: On, machine: str) -> None:
    installed = on(machine, "dpkg-query", "--show", "--showformat=${Package}\\n").stdout.split()
    assert "munge" in installed
    assert not {"mariadb-server", "default-mysql-server"} & set(installed)


@pytest.mark.parametrize(("machine", "unit"), UNITS)
def test_a_daemon_that_dies_is_started_again_however_often(on: On, machine: str, unit: str) -> None:
    asked = ["--property=Restart", "--property=StartLimitIntervalUSec"]
    said = on(machine, "systemctl", "show", unit, *asked).stdout.split()
    assert sorted(said) == ["Restart=on-failure", "StartLimitIntervalUSec=0"]
