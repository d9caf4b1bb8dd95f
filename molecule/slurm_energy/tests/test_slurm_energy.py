"""The plugins are there before slurmd is told to load them (jobs: tests/cluster)."""

from molecule.conftest import Converge, On

FILE = "/etc/modules-load.d/deploy-energy.conf"


def test_the_plugins_of_mainboards_are_there(on: On, machine: str) -> None:
    for name in ("ipmi", "xcc"):
        assert on(machine, "sh", "-c", f"ls /usr/lib/*/slurm-wlm/acct_gather_energy_{name}.so").stdout
    assert on(machine, "cat", FILE).stdout.splitlines()[1:] == ["ipmi_devintf", "ipmi_si"]


def test_processors_are_read_by_a_module_of_the_kernel(on: On, converge: Converge, machine: str) -> None:
    played = converge(only=machine, sources=["rapl"])
    assert played.returncode == 0, played.stdout
    assert on(machine, "cat", FILE).stdout.splitlines()[1:] == ["msr"]
    assert "changed=0" in converge(only=machine, sources=["rapl"]).stdout


def test_what_is_declared_no_more_is_loaded_no_more(on: On, converge: Converge, machine: str) -> None:
    assert converge(only=machine, sources=[]).returncode == 0
    assert on(machine, "test", "-e", FILE, check=False).returncode != 0
    assert converge(only=machine).returncode == 0
