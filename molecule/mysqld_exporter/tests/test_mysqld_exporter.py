"""The exporter reports the database, may see nothing else of it, and nobody else gets in by its account."""

from molecule.conftest import ASK, On


def test_it_tells_of_the_database(on: On, machine: str) -> None:
    text = on(machine, *ASK, "http://127.0.0.1:9104/metrics").stdout
    assert "\nmysql_up 1\n" in text
    assert "\nmysql_global_status_threads_connected " in text


def test_its_account_sees_no_data(on: On, machine: str) -> None:
    said = on(
        machine,
        "mariadb",
        "--batch",
        "--skip-column-names",
        "--execute",
        "SHOW GRANTS FOR prometheus@localhost",
    )
    assert said.stdout.startswith("GRANT PROCESS, BINLOG MONITOR, SLAVE MONITOR ON *.* TO")
    assert "VIA unix_socket" in said.stdout
    itself = ("setpriv", "--reuid=prometheus", "--regid=prometheus", "--clear-groups", "mariadb")
    refused = on(machine, *itself, "--execute", "USE slurm_acct_db", check=False)
    assert "Access denied" in refused.stderr


def test_nobody_else_is_let_in_as_it(on: On, machine: str) -> None:
    other = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "mariadb", "--user=prometheus")
    answer = on(machine, *other, "--execute", "SELECT 1", check=False)
    assert answer.returncode != 0
    assert "Access denied" in answer.stderr


def test_it_listens_on_the_given_address_alone(on: On, machine: str) -> None:
    listening = on(machine, "ss", "--listening", "--tcp", "--numeric", "--no-header").stdout
    assert [line.split()[3] for line in listening.splitlines() if ":9104" in line] == ["127.0.0.1:9104"]


def test_it_starts_with_the_machine(on: On, machine: str) -> None:
    assert on(machine, "systemctl", "is-enabled", "prometheus-mysqld-exporter").stdout == "enabled\n"
