"""Numbers of the machine, of its services and of other programs; on the given address alone."""

from molecule.conftest import MACHINES, Converge, On

UNIT = "prometheus-node-exporter"


def numbers(on: On, machine: str) -> str:
    return on(machine, "curl", "--silent", "--show-error", "--fail", "http://127.0.0.1:9100/metrics").stdout


def test_it_tells_of_the_machine_and_of_the_services_that_are_asked_for(on: On, machine: str) -> None:
    text = numbers(on, machine)
    assert "\nnode_memory_MemAvailable_bytes " in text
    told = {
        line.split('name="')[1].split('"')[0]
        for line in text.splitlines()
        if "node_systemd_unit_state{" in line
    }
    assert told == {"chrony.service"}
    assert 'collector="arp"' not in text


def test_arguments_arrive_as_they_are_written(on: On, machine: str) -> None:
    pid = on(machine, "systemctl", "show", "--property=MainPID", "--value", UNIT).stdout.strip()
    arguments = on(machine, "cat", f"/proc/{pid}/cmdline").stdout.split("\0")
    assert "--collector.systemd.unit-include=" + r"""(chrony|"[$]x\\'`y z)\.service""" in arguments


def test_numbers_of_other_programs_are_told(on: On, machine: str) -> None:
    path = "/var/lib/prometheus/node-exporter/backup.prom"
    on(machine, "tee", path, data="site_backup_seconds 42\n")
    text = numbers(on, machine)
    on(machine, "rm", path)
    assert "\nsite_backup_seconds 42\n" in text


def test_it_listens_on_the_given_address_alone(on: On, machine: str) -> None:
    listening = on(machine, "ss", "--listening", "--tcp", "--numeric", "--no-header").stdout
    assert [line.split()[3] for line in listening.splitlines() if ":9100" in line] == ["127.0.0.1:9100"]
    assert on(machine, "systemctl", "is-enabled", UNIT).stdout == "enabled\n"


def test_another_port_restarts_it(on: On, converge: Converge) -> None:
    answer = converge(node_exporter_port=9190)
    listening = [
        on(machine, "ss", "--listening", "--tcp", "--no-header", "sport = :9190").stdout
        for machine in MACHINES
    ]
    again = converge()
    assert all(listening)
    assert answer.stdout.count("changed=2") == again.stdout.count("changed=2") == len(MACHINES)


def test_one_that_does_not_come_up_is_an_error_that_says_why(on: On, converge: Converge) -> None:
    answer = converge(only=MACHINES[0], node_exporter_arguments=["--no-such-flag"])
    assert answer.returncode == 2, answer.stdout + answer.stderr
    assert "does not answer on port 9100 |" in answer.stderr
    assert "unknown long flag '--no-such-flag'" in answer.stderr
    assert converge(only=MACHINES[0]).returncode == 0
    assert "node_memory_MemAvailable_bytes" in numbers(on, MACHINES[0])
