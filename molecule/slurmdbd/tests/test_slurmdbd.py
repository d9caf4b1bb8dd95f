"""slurmdbd answers, keeps what it is told in the database, and keeps its password to itself."""

import re

from molecule.conftest import On

PASSWORD = "one-password-of-the-scenario"  # noqa: S105 - of machines that live for a minute
CONFIGURATION = "/etc/slurm/slurmdbd.conf"


def test_what_sacctmgr_says_is_in_the_database(on: On, machine: str) -> None:
    on(machine, "sacctmgr", "-i", "add", "qos", "name=probe")
    names = on(
        machine, "mariadb", "--batch", "slurm_acct_db", data="SELECT name FROM qos_table WHERE deleted=0"
    )
    shown = on(machine, "sacctmgr", "-nP", "show", "qos", "format=Name").stdout
    on(machine, "sacctmgr", "-i", "delete", "qos", "where", "name=probe")
    assert "probe" in names.stdout.split()
    assert "probe" in shown.split()


def test_settings_are_in_force(on: On, machine: str) -> None:
    text = on(machine, "sacctmgr", "show", "configuration").stdout
    shown = dict(re.findall(r"^(\w+)\s*= (.*?)\s*$", text, re.MULTILINE))
    assert shown["PurgeJobAfter"].startswith("24 months")
    assert shown["PurgeTXNAfter"].startswith("12 months")
    assert shown["PurgeEventAfter"] == "NONE"
    assert shown["ArchiveJobs"].lower() == "yes"
    assert shown["ArchiveDir"] == "/var/spool/slurmdbd"
    assert shown["MaxQueryTimeRange"] == "60-00:00:00"
    assert on(machine, "stat", "--format=%U %a", "/var/spool/slurmdbd").stdout == "slurm 750\n"


def test_it_runs_as_slurm_and_starts_with_the_machine(on: On, machine: str) -> None:
    assert on(machine, "ps", "-C", "slurmdbd", "-o", "user=").stdout == "slurm\n"
    assert on(machine, "systemctl", "is-enabled", "slurmdbd").stdout == "enabled\n"


def test_only_slurm_reads_the_password(on: On, machine: str) -> None:
    assert on(machine, "stat", "--format=%U:%G %a", CONFIGURATION).stdout == "slurm:slurm 600\n"
    places = ["/etc", "/run", "/tmp", "/var"]
    search = [
        "grep",
        "--recursive",
        "--files-with-matches",
        "--no-messages",
        "--fixed-strings",
        PASSWORD,
        *places,
    ]
    nobody = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
    assert CONFIGURATION in on(machine, *search, check=False).stdout.split()
    assert on(machine, *nobody, *search, check=False).stdout == ""
    processes = on(machine, "ps", "-e", "-ww", "-o", "args=").stdout
    assert PASSWORD not in processes


def test_it_finds_nothing_wrong_not_even_with_the_settings_of_the_database(on: On, machine: str) -> None:
    log = on(machine, "cat", "/var/log/slurm/slurmdbd.log").stdout
    assert "started" in log
    assert [line for line in log.splitlines() if "error" in line or "fatal" in line] == []
