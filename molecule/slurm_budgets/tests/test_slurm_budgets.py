"""Members see what is left, a period begins anew, and what slurmctld does not know is not forgotten."""

import json
import time
from collections.abc import Callable
from typing import Any

from molecule.conftest import On

STATE = "/var/spool/slurmctld/deploy_budgets.json"
LOCK = "/var/spool/slurmctld/deploy_budgets.lock"


def as_user(on: On, machine: str, user: str, command: str) -> str:
    return on(machine, "su", "--login", user, "--command", command).stdout


def budget(on: On, machine: str, user: str = "alice") -> dict[str, Any]:
    [found] = json.loads(as_user(on, machine, user, "show-budget --json"))["budgets"]
    return dict(found)


def wait(what: Callable[[], bool], seconds: float = 90) -> bool:
    deadline = time.monotonic() + seconds
    while not (done := what()) and time.monotonic() < deadline:
        time.sleep(0.5)
    return done


def test_a_member_sees_why_a_job_waits(on: On, machine: str) -> None:
    job = as_user(on, machine, "alice", "sbatch --parsable --time=30 --ntasks=1 --wrap true").strip()
    try:
        reason = ("squeue", "--noheader", "--format=%r", f"--jobs={job}")
        assert wait(lambda: on(machine, *reason).stdout.strip() == "QOSGrpBillingMinutes")
        said = as_user(on, machine, "alice", "show-budget")
    finally:
        on(machine, "scancel", job)
    assert (
        f"job {job} waits (QOSGrpBillingMinutes): until its time limit it may use 300.0 hours of billing"
        in said
    )
    assert "it is more than the project ever has" in said


def test_a_period_begins_anew(on: On, machine: str) -> None:
    as_user(on, machine, "alice", "srun --time=1 --ntasks=1 sleep 7")
    assert wait(lambda: budget(on, machine)["resources"]["billing"]["used_hours"] > 0)
    assert budget(on, machine, "carol")["members"]["alice"]["billing"] > 0
    assert wait(lambda: on(machine, "test", "-s", STATE, check=False).returncode == 0)
    on(machine, "flock", LOCK, "sed", "--in-place", "s/2[0-9]*-[0-9]*-01/2020-01-01/", STATE)
    assert wait(lambda: budget(on, machine)["resources"]["billing"]["used_hours"] == 0)
    assert "budget of laser: a new period begins" in on(machine, "journalctl", "-u", "deploy-budgets").stdout
    assert budget(on, machine, "carol")["members"]["alice"]["billing"] > 0


def test_it_works_as_slurm_alone(on: On, machine: str) -> None:
    shown = on(machine, "systemctl", "show", "deploy-budgets", "--property=User", "--value").stdout
    assert shown.strip() == "slurm"
    assert on(machine, "stat", "--format=%U", STATE).stdout.strip() == "slurm"
