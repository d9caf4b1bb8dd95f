"""The key is the daemons' alone, the plugin that reads it is there; users are in the scenario slurm_rest."""

from molecule.conftest import Converge, On

KEY = "/etc/slurm/jwt_hs256.key"


def test_only_the_daemons_read_it(on: On, machine: str) -> None:
    assert on(machine, "stat", "--format=%a %U:%G", KEY).stdout.strip() == "600 slurm:slurm"
    assert on(machine, "runuser", "--user", "nobody", "--", "cat", KEY, check=False).returncode != 0
    assert on(machine, "runuser", "--user", "slurm", "--", "cat", KEY).stdout.endswith("characters..")


def test_the_plugin_is_there(on: On, machine: str) -> None:
    assert on(machine, "sh", "-c", "ls /usr/lib/*/slurm-wlm/auth_jwt.so").stdout


def test_another_key_is_said_without_its_text(on: On, converge: Converge, machine: str) -> None:
    played = converge("--diff", only=machine, tokens_key="another-one-of-the-test-with-48-characters......")
    assert played.returncode == 0, played.stdout
    assert "another-one" not in played.stdout
    assert on(machine, "cat", KEY).stdout.startswith("another-one")
    assert converge(only=machine).returncode == 0
