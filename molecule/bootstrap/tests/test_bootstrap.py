"""Nothing is left half-way, and packages can be installed at once."""

from molecule.conftest import On


def test_interrupted_installation_is_complete(on: On, machine: str) -> None:
    assert on(machine, "dpkg", "--audit").stdout == ""
    status = on(machine, "dpkg-query", "--show", "--showformat", "${db:Status-Status}", "tree").stdout
    assert status == "installed"


def test_ansible_can_talk_to_apt(on: On, machine: str) -> None:
    program = "import apt; print(apt.Cache()['munge'].candidate is not None)"
    assert on(machine, "python3", "-c", program).stdout == "True\n"


def test_packages_can_be_installed(on: On, machine: str) -> None:
    assert "Inst munge" in on(machine, "apt-get", "--simulate", "install", "munge").stdout
