"""Who is in a group charges its account, who left submits nothing more; an empty answer takes nobody out."""

import time
from collections.abc import Iterator

import pytest

from molecule.conftest import Converge, On


def sync(on: On, machine: str, *options: str) -> str:
    return on(machine, "sync-accounts", *options).stdout


def accounts(on: On, machine: str) -> set[str]:
    columns = "format=user,maxsubmitjobs"
    shown = on(machine, "sacctmgr", "-nP", "show", "associations", "wopl", "account=sea", columns).stdout
    return set(shown.splitlines()) - {"|"}


def group(on: On, machine: str, *names: str) -> None:
    on(machine, "gpasswd", "--members", ",".join(names), "seafarers")


@pytest.fixture
def joined(on: On, machine: str) -> Iterator[str]:
    """A machine on which both may charge the account."""
    group(on, machine, "alice", "carol")
    sync(on, machine)
    yield machine
    on(machine, "scancel", "--account=sea")
    group(on, machine, "alice", "carol")
    sync(on, machine)


def test_members_charge_it(on: On, joined: str) -> None:
    assert accounts(on, joined) == {"alice|", "carol|"}
    assert sync(on, joined, "--plan") == "nothing to do\n"


def test_who_left_submits_no_more_and_what_waits_is_held(on: On, joined: str) -> None:
    command = "sbatch --parsable --account=sea --begin=now+1hour --wrap true"
    job = on(joined, "su", "--login", "alice", "--command", command).stdout.strip()
    group(on, joined, "carol")
    assert "sea: alice leaves\n1 changes" in sync(on, joined, "--plan")
    assert accounts(on, joined) == {"alice|", "carol|"}
    sync(on, joined)
    assert accounts(on, joined) == {"alice|0", "carol|"}
    reason = ("squeue", "--noheader", "--format=%r", f"--jobs={job}")
    assert on(joined, *reason).stdout.strip() == "JobHeldAdmin"
    refused = on(joined, "su", "--login", "alice", "--command", command, check=False)
    assert "AssocMaxSubmitJobLimit" in refused.stderr
    group(on, joined, "alice", "carol")
    sync(on, joined)
    assert accounts(on, joined) == {"alice|", "carol|"}
    assert on(joined, *reason).stdout.strip() != "JobHeldAdmin"


def test_an_empty_group_takes_nobody_out(on: On, joined: str) -> None:
    group(on, joined)
    assert "nobody is taken out, because the group seafarers is empty" in sync(on, joined)
    assert accounts(on, joined) == {"alice|", "carol|"}


def test_a_group_that_nobody_knows_takes_nobody_out(on: On, joined: str) -> None:
    on(joined, "groupmod", "--new-name", "elsewhere", "seafarers")
    try:
        assert "nobody knows the group seafarers" in sync(on, joined)
        assert accounts(on, joined) == {"alice|", "carol|"}
    finally:
        on(joined, "groupmod", "--new-name", "seafarers", "elsewhere")


def test_the_timer_runs_it_as_slurm(on: On, machine: str) -> None:
    group(on, machine, "carol")
    on(machine, "systemctl", "start", "deploy-sync-accounts.service")
    assert accounts(on, machine) == {"alice|0", "carol|"}
    group(on, machine, "alice", "carol")
    on(machine, "systemctl", "start", "deploy-sync-accounts.service")
    assert accounts(on, machine) == {"alice|", "carol|"}
    assert on(machine, "systemctl", "is-active", "deploy-sync-accounts.timer").stdout.strip() == "active"


SUBMIT = ("runuser", "--user=nobody", "--", "sbatch", "--parsable", "--account=sea", "--hold", "--chdir=/tmp")


def submit(on: On, machine: str, *options: str) -> str:
    return on(machine, *SUBMIT, *options, "--output=/dev/null", "--wrap=true").stdout.strip()


def cancel(on: On, machine: str, *jobs: str) -> None:
    """Until the database, too, knows that they have ended."""
    on(machine, "scancel", *jobs)
    state = ("sacct", "--allusers", "-nXP", "--format=state", f"--jobs={','.join(jobs)}")
    deadline = time.monotonic() + 60
    while any("CANCELLED" not in line for line in on(machine, *state).stdout.splitlines()):
        assert time.monotonic() < deadline, on(machine, *state).stdout
        time.sleep(0.5)


def declare(converge: Converge, machine: str, **variables: object) -> None:
    played = converge(only=machine, **variables)
    assert played.returncode == 0, played.stdout + played.stderr


def test_who_is_declared_no_more_submits_no_more_whatever_waits(
    on: On, machine: str, converge: Converge
) -> None:
    """A job that is held would keep the membership, and all that it may do."""
    users = [{"name": "nobody", "accounts": ["sea"]}]
    declare(converge, machine, users=users)
    job = submit(on, machine)
    declare(converge, machine, users=[])
    assert "nobody|0" in accounts(on, machine)
    refused = on(machine, *SUBMIT, "--wrap=true", check=False)
    assert "AssocMaxSubmitJobLimit" in refused.stderr
    declare(converge, machine, users=users)
    again = submit(on, machine)
    cancel(on, machine, job, again)
    declare(converge, machine, users=[])
    assert not [each for each in accounts(on, machine) if each.startswith("nobody")]


def test_who_is_declared_no_more_and_is_in_the_group_goes_on(
    on: On, machine: str, converge: Converge
) -> None:
    """With a job, which keeps Slurm from taking his membership away."""
    declare(converge, machine, users=[{"name": "nobody", "accounts": ["sea"]}])
    job = submit(on, machine)
    group(on, machine, "alice", "carol", "nobody")
    declare(converge, machine, users=[])
    sync(on, machine)
    assert "nobody|" in accounts(on, machine)
    again = submit(on, machine)
    group(on, machine, "alice", "carol")
    sync(on, machine)
    assert "nobody|0" in accounts(on, machine)
    cancel(on, machine, job, again)
    on(machine, "sacctmgr", "-i", "delete", "user", "where", "name=nobody")


def test_a_qos_that_is_declared_no_more_stays_while_jobs_are_in_it(
    on: On, machine: str, converge: Converge
) -> None:
    users = [{"name": "nobody", "accounts": ["sea"]}]
    declare(converge, machine, users=users, qos=[{"name": "tide"}])
    job = submit(on, machine, "--qos=tide")
    declare(converge, machine, users=users, qos=[])
    assert "tide" in on(machine, "sacctmgr", "-nP", "show", "qos", "format=name").stdout.split()
    cancel(on, machine, job)
    declare(converge, machine, users=[], qos=[])
    assert "tide" not in on(machine, "sacctmgr", "-nP", "show", "qos", "format=name").stdout.split()
