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
