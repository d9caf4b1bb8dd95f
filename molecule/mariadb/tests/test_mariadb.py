"""The server has its settings, keeps to itself, and its user can do what was declared and nothing else."""

import re
import time
from subprocess import CompletedProcess

import pytest

from molecule.conftest import MACHINES, Converge, On
from tests.unit.roles.loading import load_module

buffer_pool = load_module("roles/mariadb/filter_plugins/buffer_pool.py")

PASSWORD = "one-password-of-the-scenario"  # noqa: S105 - of machines that live for a minute


def ask(on: On, machine: str, statement: str) -> list[str]:
    """As the machine's root, who needs no password."""
    return on(machine, "mariadb", "--batch", "--skip-column-names", data=statement).stdout.splitlines()


def client(on: On, machine: str, user: str, *, host: str = "localhost") -> list[str]:
    """The command with which somebody asks who has the scenario's password."""
    defaults = f"/root/{user}.cnf"
    on(machine, "tee", defaults, data=f"[client]\nuser={user}\npassword={PASSWORD}\nhost={host}\n")
    return ["mariadb", f"--defaults-file={defaults}", "--batch", "--skip-column-names"]


def ask_as_slurm(on: On, machine: str, statement: str, *, host: str = "localhost") -> CompletedProcess[str]:
    command = [*client(on, machine, "slurm", host=host), "slurm_acct_db"]
    return on(machine, *command, data=statement, check=False)


def test_settings_are_in_force(on: On, machine: str) -> None:
    settings = "@@innodb_buffer_pool_size, @@innodb_log_file_size, @@innodb_lock_wait_timeout"
    (memory,) = re.findall(r"^MemTotal: *(\d+) kB", on(machine, "cat", "/proc/meminfo").stdout, re.MULTILINE)
    # Trixie's follows from the machine's memory.
    pool = 160 if machine == "bookworm" else buffer_pool.buffer_pool_mb(int(memory) // 1024)
    assert ask(on, machine, f"SELECT {settings}, @@max_allowed_packet, @@max_connections") == [
        f"{pool << 20}\t{256 << 20}\t900\t{64 << 20}\t77"
    ]
    # On where nothing is said (11.8), and slurmdbd ends at the first conflict.
    assert ask(on, machine, "SELECT @@innodb_snapshot_isolation") == ["0"]


def test_only_the_machine_itself_is_listened_to(on: On, machine: str) -> None:
    sockets = on(machine, "ss", "--listening", "--tcp", "--numeric", "--no-header").stdout
    listening = {line.split()[3] for line in sockets.splitlines()}
    assert {address for address in listening if address.endswith(":3306")} == {"127.0.0.1:3306"}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_user_has_its_password_and_database(on: On, machine: str, host: str) -> None:
    statement = (
        "CREATE TABLE probe (x INT); INSERT INTO probe VALUES (42); SELECT x FROM probe; DROP TABLE probe"
    )
    answer = ask_as_slurm(on, machine, statement, host=host)
    assert answer.stdout == "42\n", answer.stderr


def test_user_has_nothing_else(on: On, machine: str) -> None:
    assert "SELECT command denied" in ask_as_slurm(on, machine, "SELECT user FROM mysql.user").stderr
    assert "to database 'elsewhere'" in ask_as_slurm(on, machine, "CREATE DATABASE elsewhere").stderr


def test_nobody_is_anonymous_and_root_is_the_machines_root(on: On, machine: str) -> None:
    assert ask(on, machine, "SELECT user FROM mysql.user WHERE user = ''") == []
    assert "test" not in ask(on, machine, "SHOW DATABASES")
    answer = on(machine, "setpriv", "--reuid=nobody", "mariadb", "--user=root", data="SELECT 1", check=False)
    assert "Access denied" in answer.stderr


def test_what_was_not_declared_is_kept(on: On) -> None:
    assert "kept" in ask(on, "bookworm", "SHOW DATABASES")


def account(name: str) -> dict[str, str]:
    """As it is declared."""
    return {"name": name, "password": PASSWORD, "privileges": "*.*:SELECT,INSERT,CREATE"}


def until_connected(on: On, machine: str, name: str, *, is_so: bool) -> None:
    query = f"SELECT COUNT(*) FROM information_schema.processlist WHERE user = '{name}'"  # noqa: S608
    deadline = time.monotonic() + 60
    while (ask(on, machine, query) != ["0"]) is not is_so:
        assert time.monotonic() < deadline, ask(on, machine, "SHOW FULL PROCESSLIST")
        time.sleep(0.2)


def test_an_account_that_is_declared_no_more_cannot_log_in_and_data_stay(on: On, converge: Converge) -> None:
    answer = converge(users=[account("slurm"), account("guest")], databases=["slurm_acct_db", "work"])
    assert answer.returncode == 0, answer.stdout
    for machine in MACHINES:
        guest = client(on, machine, "guest")
        on(machine, *guest, data="CREATE TABLE work.things (x INT); INSERT INTO work.things VALUES (7)")
        on(machine, "systemd-run", "--quiet", "--unit=session", *guest, "--execute=SELECT SLEEP(3600)")
        until_connected(on, machine, "guest", is_so=True)

    answer = converge("-v", users=[], databases=["slurm_acct_db"])
    assert answer.returncode == 0, answer.stdout
    assert "the database work is declared no more and stays" in answer.stdout
    for machine in MACHINES:
        until_connected(on, machine, "guest", is_so=False)
        said = on(machine, *client(on, machine, "guest"), data="SELECT 1", check=False).stderr
        assert "Access denied for user 'guest'@'localhost'" in said
        assert ask(on, machine, "SELECT x FROM work.things") == ["7"]
        assert "Access denied" in ask_as_slurm(on, machine, "SELECT 1").stderr
    # It was on this machine before it was declared.
    assert ask(on, "bookworm", "SHOW GRANTS FOR slurm@localhost")[0].startswith("GRANT USAGE ON *.*")
    assert ask(on, "trixie", "SELECT user FROM mysql.user WHERE user = 'slurm'") == []

    again = converge("-v", users=[], databases=["slurm_acct_db"])
    assert "changed=0" in again.stdout, again.stdout
    assert "the database work is declared no more and stays" in again.stdout
    for machine in MACHINES:
        ask(on, machine, "DROP DATABASE work")
    answer = converge()
    assert answer.returncode == 0, answer.stdout
    for machine in MACHINES:
        assert ask_as_slurm(on, machine, "SELECT 1").stdout == "1\n"


def test_it_starts_with_the_machine(on: On, machine: str) -> None:
    assert on(machine, "systemctl", "is-enabled", "mariadb").stdout == "enabled\n"


def test_a_server_that_does_not_start_says_why(on: On, converge: Converge) -> None:
    answer = converge(only=MACHINES[0], parameters={"no_such_setting": 1})
    assert answer.returncode == 2, answer.stdout + answer.stderr
    assert "unknown variable 'no_such_setting=1'" in answer.stderr
    again = converge(only=MACHINES[0])
    assert again.returncode == 0, again.stderr
    assert on(MACHINES[0], "systemctl", "is-active", "mariadb").stdout == "active\n"
