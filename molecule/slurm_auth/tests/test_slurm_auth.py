"""The keys are slurm's alone, and a new one stands beside the one of before (daemons: tests/cluster)."""

import base64
import json
from typing import Any

from molecule.conftest import Converge, On

FILE = "/etc/slurm/slurm.jwks"
FIRST = "a-key-for-this-scenario-alone-of-48-characters.."
OTHER = "another-one-of-the-test-with-48-characters......"


def keys(on: On, machine: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(on(machine, "cat", FILE).stdout)["keys"]
    return found


def texts(found: list[dict[str, Any]]) -> list[str]:
    return [base64.b64decode(key["k"]).decode() for key in found]


def test_only_the_daemons_read_it(on: On, machine: str) -> None:
    assert on(machine, "stat", "--format=%a %U:%G", FILE).stdout.strip() == "600 slurm:slurm"
    assert on(machine, "runuser", "--user", "nobody", "--", "cat", FILE, check=False).returncode != 0
    (key,) = keys(on, machine)
    assert (key["use"], *texts([key])) == ("default", FIRST)


def test_another_key_is_signed_with_and_the_one_of_before_ends(
    on: On, converge: Converge, machine: str
) -> None:
    played = converge("--diff", only=machine, auth_key=OTHER)
    assert played.returncode == 0, played.stdout
    assert "another-one" not in played.stdout
    now = int(on(machine, "date", "+%s").stdout)
    new, old = keys(on, machine)
    assert texts([new, old]) == [OTHER, FIRST]
    assert (new["use"], "exp" in new, "use" in old) == ("default", False, False)
    assert now < old["exp"] <= now + 300
    again = converge(only=machine, auth_key=OTHER)
    assert "changed=0" in again.stdout
    assert converge(only=machine).returncode == 0


def test_with_munge_there_is_none(on: On, converge: Converge, machine: str) -> None:
    assert converge(only=machine, auth_type="auth/munge").returncode == 0
    assert on(machine, "test", "-e", FILE, check=False).returncode != 0
    assert converge(only=machine).returncode == 0
