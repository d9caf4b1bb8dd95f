"""The commands find the controller wherever a user logs in."""

from molecule.conftest import Converge, On

BY_THEMSELVES = ["env", "--unset=SLURM_CONF_SERVER", "timeout", "20"]


def logged_in(on: On, machine: str, command: str) -> str:
    """What a user's login shell answers."""
    return on(machine, "su", "--login", "alice", "--command", f"timeout 20 {command}").stdout


def test_user_sees_the_partitions(on: On, machine: str) -> None:
    assert logged_in(on, machine, "sinfo --noheader --format='%P %N'") == "probe* node1\n"


def test_user_submits_a_job_and_takes_it_back(on: On, machine: str) -> None:
    job = logged_in(on, machine, "sbatch --parsable --hold --wrap=hostname").strip()
    assert logged_in(on, machine, f"squeue --noheader --jobs={job} --format='%u %T'") == "alice PENDING\n"
    logged_in(on, machine, f"scancel {job}")
    assert logged_in(on, machine, "squeue --noheader --me") == ""


def test_no_configuration_lies_where_the_commands_would_find_it_anyway(on: On, machine: str) -> None:
    assert on(machine, "test", "-e", "/etc/slurm/slurm.conf", check=False).returncode == 1


def test_on_bookworm_the_way_is_the_environment(on: On) -> None:
    assert on("bookworm", *BY_THEMSELVES, "sinfo", check=False).returncode != 0
    assert logged_in(on, "bookworm", "printenv SLURM_CONF_SERVER") == "molecule-slurm-client-bookworm\n"


def test_on_trixie_the_way_is_sackd(on: On) -> None:
    assert on("trixie", *BY_THEMSELVES, "sinfo", "--noheader", "--format=%N").stdout == "node1\n"
    assert on("trixie", "systemctl", "is-enabled", "sackd").stdout == "enabled\n"
    received = on("trixie", "cat", "/run/slurm/conf/slurm.conf").stdout
    assert received == on("trixie", "cat", "/srv/controller/slurm.conf").stdout


def test_what_the_commands_asked_in_an_earlier_release_is_gone(on: On, converge: Converge) -> None:
    on("trixie", "sh", "-c", "echo SLURM_CONF_SERVER=elsewhere >> /etc/environment")
    assert converge(only="trixie", tags="configure").returncode == 0
    assert "SLURM_CONF_SERVER" not in on("trixie", "cat", "/etc/environment").stdout
