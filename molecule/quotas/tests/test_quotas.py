"""People can ask for their limits; a file system without quotas is refused, with what to do."""

import re

from molecule.conftest import MACHINES, Converge, On


def test_people_may_ask(on: On, machine: str) -> None:
    assert on(machine, "runuser", "--user=alice", "--", "show-quotas").stdout == "no limits are set for you\n"
    assert on(machine, "show-quotas", "--limits").stdout == ""
    assert on(machine, "setquota", "--version", check=False).stdout.startswith("Quota utilities")


def test_a_file_system_without_quotas_is_refused_with_what_to_do(converge: Converge) -> None:
    answer = converge(tags="configure", filesystems=[{"path": "/dev/shm", "each_user": {"space": "1G"}}])
    assert answer.returncode == 2, answer.stdout + answer.stderr
    advice = r"\w\. Turn them on.*tune2fs -O quota.*--template=quotaon@"
    said = rf"fatal: \[molecule-quotas-(\w+)\].*/dev/shm has no user quotas.*{advice}"
    assert sorted(re.findall(said, answer.stderr)) == MACHINES
