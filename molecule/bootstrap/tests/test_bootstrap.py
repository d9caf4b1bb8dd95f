"""Nothing is left half-way, and packages can be installed at once."""

from molecule.conftest import MACHINES, Converge, On


def is_complete(on: On, machine: str) -> bool:
    status = on(machine, "dpkg-query", "--show", "--showformat", "${db:Status-Status}", "tree").stdout
    return on(machine, "dpkg", "--audit").stdout == "" and status == "installed"


def test_interrupted_installation_is_complete(on: On, machine: str) -> None:
    assert is_complete(on, machine)


def test_ansible_can_talk_to_apt(on: On, machine: str) -> None:
    program = "import apt; print(apt.Cache()['munge'].candidate is not None)"
    assert on(machine, "python3", "-c", program).stdout == "True\n"


def test_packages_can_be_installed(on: On, machine: str) -> None:
    assert "Inst munge" in on(machine, "apt-get", "--simulate", "install", "munge").stdout


def test_it_is_completed_where_nothing_else_is_to_be_installed(on: On, converge: Converge) -> None:
    for machine in MACHINES:
        on(machine, "dpkg", "--unpack", "--recursive", "/tmp")
        assert not is_complete(on, machine)
    answer = converge()
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert all(is_complete(on, machine) for machine in MACHINES)


def test_lists_that_a_server_does_not_give_are_fetched_by_a_later_run(on: On, converge: Converge) -> None:
    missed, source = "/var/lib/deploy/package-lists-missed", "/etc/apt/sources.list.d/away.list"
    for machine in MACHINES:
        on(machine, "tee", source, data="deb [trusted=yes] http://127.0.0.1:9/debian stable main\n")
    answer = converge()
    assert answer.returncode == 0, answer.stdout + answer.stderr
    for machine in MACHINES:
        on(machine, "test", "-e", missed)
        # Nobody would take lists for old by the files that say where packages come from.
        on(machine, "rm", source)
        on(machine, "touch", "--date", "2 hours ago", missed)
    answer = converge()
    assert answer.returncode == 0, answer.stdout + answer.stderr
    for machine in MACHINES:
        on(machine, "test", "!", "-e", missed)
