"""A project's budget: it runs out during a job, users read why, a manager sees it coming."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cluster.jobs import wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, run, wait_until

pytestmark = [pytest.mark.one_release, pytest.mark.more]

_CPU_HOURS = 50
"""Of billing, which a CPU costs in a minute."""
_WEIGHTS = f"CPU={60 * _CPU_HOURS},GRES/gpu=1"
_SITE: dict[str, Any] = {
    "slurmctld_partitions": [
        {
            "name": "batch",
            "default": True,
            "max_time": "1:00:00",
            "tres_billing_weights": _WEIGHTS,
        }
    ],
    "slurmctld_parameters": {"PriorityCalcPeriod": 1},
    "slurmctld_private_data": ["jobs", "usage", "users"],
    "slurm_budgets_seconds": 5,
    "slurm_accounts_accounts": [
        {"name": "research"},
        {"name": "laser", "members": ["alice"], "managers": ["carol"], "budget": {"hours": "billing=51"}},
        {
            "name": "ice",
            "members": ["bob"],
            "budget": {"hours": "billing=5", "period": "year", "at_end": "lower", "lower_qos": "nocont"},
        },
    ],
    "slurm_accounts_qos": [{"name": "nocont", "max_wall": "01:00:00"}],
    "slurm_accounts_users": [],
}


@pytest.fixture(scope="module")
def paying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with two projects, of which one stops at the end of its budget and one goes on."""
    with booted("projects", tmp_path_factory, "--nodes", "1", "--gpus", "1") as made:
        _change(made, **_SITE)
        people = made.directory / "group_vars/all.yml"
        site = yaml.safe_load(people.read_text())
        site["users_accounts"].append({"name": "carol", "uid": 2003})
        people.write_text(yaml.safe_dump(site))
        made.deploy()
        yield made


def test_a_job_starts_only_if_it_can_be_paid_to_its_end(paying: Cluster) -> None:
    first = _submit(paying, "alice", "--time=1", "sleep 50")
    wait_for_job(paying, first, "RUNNING")
    second = _submit(paying, "alice", "--time=1", "true")
    wait_until("it waits for its budget", lambda: _reason(paying, second) == "QOSGrpBillingMinutes", 60)
    said = paying.as_user("show-budget")
    assert f"job {second} waits (QOSGrpBillingMinutes): until its time limit it may use 50.0 hours" in said
    assert f"scontrol update JobId={second} TimeLimit=MINUTES" in said
    # It goes on to its end, whatever else happens.
    wait_for_job(paying, first, "COMPLETED", 120)
    wait_until("Slurm has counted it", lambda: _used(paying, "alice", "laser") > 80, 150)
    for user in ("alice", "carol"):
        assert re.search(r"^warning: laser: [89]\d ", paying.as_user("show-budget", user=user), re.MULTILINE)
    assert _reason(paying, second) == "QOSGrpBillingMinutes"
    paying.as_user(f"scancel {second}")


def test_a_manager_sees_who_used_it_and_nobody_else_does(paying: Cluster) -> None:
    [laser] = _budgets(paying, "carol")
    ran = paying.on("ctl1", "sacct", "-nXP", "--allusers", "--accounts=laser", "--format=ElapsedRaw").split()
    hours = sum(map(int, ran)) * _CPU_HOURS / 60
    assert laser["members"]["alice"]["billing"] == pytest.approx(hours, abs=1)
    assert "laser, by member since " in paying.as_user("show-budget", user="carol")
    [seen] = _budgets(paying, "alice")
    assert "members" not in seen
    assert [budget["project"] for budget in _budgets(paying, "bob")] == ["ice"]
    assert "nocont" not in paying.as_user("show-budget", user="carol")


def test_who_may_do_what_and_why(paying: Cluster) -> None:
    said = run(*DEPLOY, "users", str(paying.inventory), "--json").stdout
    people = {person["name"]: person for person in json.loads(said)}
    assert {"alice", "bob", "carol"} <= people.keys()
    [laser] = people["carol"]["memberships"]
    assert (laser["account"], laser["qos"], laser["why"]) == ("laser", ["laser"], "inventory")
    assert laser["is_manager"]
    assert not people["alice"]["memberships"][0]["is_manager"]
    assert people["bob"]["memberships"][0]["qos"] == ["ice", "nocont"]
    assert (people["alice"]["source"], people["alice"]["logins"], people["alice"]["sudo"]) == (
        *("local", ["login1"]),
        False,
    )


def test_jobs_go_on_at_a_lower_priority(paying: Cluster) -> None:
    running = _submit(paying, "bob", "--time=20", "until test -e stop; do sleep 1; done")
    wait_for_job(paying, running, "RUNNING")
    waiting = _submit(paying, "bob", "--ntasks=2 --time=20", "true")
    before = int(_of_job(paying, waiting, "%Q"))
    wait_until("its QOS is the lower one", lambda: _of_job(paying, waiting, "%q") == "nocont", 180)
    wait_until("it has a lower priority", lambda: int(_of_job(paying, waiting, "%Q")) < before, 120)
    assert _of_job(paying, running, "%T %q") == "RUNNING ice"
    said = paying.as_user("show-budget", user="bob")
    assert "ice: all hours of billing are used; jobs go on in the QOS nocont until " in said
    paying.as_user("touch stop", user="bob")
    wait_for_job(paying, running, "COMPLETED", 60)
    wait_for_job(paying, waiting, "COMPLETED", 60)


def test_a_rerun_finds_nothing_to_do(paying: Cluster) -> None:
    assert "laser" not in paying.plan()


def test_a_period_begins_anew_and_accounting_stays(paying: Cluster) -> None:
    jobs = ("sacct", "--noheader", "--allocations", "--allusers", "--accounts=laser", "--format=JobID")
    known = paying.on("ctl1", *jobs)
    assert known.split()
    state = "/var/spool/slurmctld/deploy_budgets"
    last_year = ("sed", "--in-place", "s/2[0-9]*-[0-9]*-01/2020-01-01/g", f"{state}.json")
    paying.on("ctl1", "flock", f"{state}.lock", *last_year)
    wait_until("its use is nothing", lambda: _used(paying, "alice", "laser") == 0, 120)
    assert "budget of laser: a new period begins" in paying.on("ctl1", "journalctl", "-u", "deploy-budgets")
    assert paying.on("ctl1", *jobs) == known


def test_without_safe_a_job_is_ended_when_the_budget_is_used_up(paying: Cluster) -> None:
    _change(paying, slurmctld_accounting_enforce=["associations", "limits", "qos"])
    paying.deploy()
    job = _submit(paying, "alice", "--time=50", "sleep 3000")
    wait_for_job(paying, job, "TIMEOUT", 360)
    said = paying.as_user("show-budget")
    assert f"job {job} was ended before its time limit: the hours of laser were used up while it ran" in said
    assert "laser: all hours of billing are used; no job starts until " in said
    after = _submit(paying, "alice", "--time=1", "true")
    wait_until("it waits", lambda: _reason(paying, after) == "QOSGrpBillingMinutes", 60)
    paying.as_user(f"scancel {after}")


def _change(cluster: Cluster, **variables: object) -> None:
    path = cluster.directory / "group_vars/all.yml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **variables}))


def _submit(cluster: Cluster, user: str, options: str, script: str) -> str:
    return cluster.as_user(f"sbatch --parsable {options} --wrap '{script}'", user=user).strip()


def _of_job(cluster: Cluster, job: str, format_: str) -> str:
    return cluster.on("ctl1", "squeue", "--noheader", f"--jobs={job}", f"--format={format_}").strip()


def _reason(cluster: Cluster, job: str) -> str:
    return _of_job(cluster, job, "%r")


def _budgets(cluster: Cluster, user: str) -> list[dict[str, Any]]:
    return list(json.loads(cluster.as_user("show-budget --json", user=user))["budgets"])


def _used(cluster: Cluster, user: str, project: str) -> int:
    [found] = [budget for budget in _budgets(cluster, user) if budget["project"] == project]
    return int(found["resources"]["billing"]["used_percent"])
