"""`deploy replay`: 20,000 jobs of a month, and what other limits, partitions and a script would do to them.

The jobs are rows that the test writes into accounting; what is judged refused is then submitted for real.
"""

import json
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, run, wait_until

pytestmark = [pytest.mark.one_release, pytest.mark.more]

JOBS = 20_000
_SECONDS = 600
"""It takes less than two minutes on two CPUs that are busy; some are busier."""
# Of job n: four minutes to five hours, one node or two, every seventh with GPUs: 600 different requests.
_ROWS = """
insert into {name}_job_table
 (account, cpus_req, job_name, id_assoc, id_job, id_qos, id_resv, id_wckey, id_user, id_group, het_job_id,
  het_job_offset, state_reason_prev, nodes_alloc, `partition`, priority, state, work_dir, tres_alloc,
  tres_req, timelimit, time_submit, time_eligible, time_start, time_end, submit_line, gres_used)
select 'research', 2, 'secret-project', assoc.id_assoc, 100000 + seq, 1, 0, 0, if(seq % 2, 2001, 2002), 100,
  0, 4294967294, 0, nodes, 'batch', 1, 3, '/', '', concat('1=2,2=', 50 * nodes * (1 + (seq div 1050) % 2),
  ',4=', nodes, ',5=2', if(seq % 7, '', concat(',', gpu.id, '=', nodes))), 4 * (1 + seq % 75),
  at, at, at, at + 60, 'sbatch secret-script.sh', ''
from (select seq, unix_timestamp() - 86400 * (1 + seq % 25) as at, 1 + seq % 2 as nodes
      from seq_1_to_{jobs}) numbers
join {name}_assoc_table assoc on assoc.user = if(seq % 2, 'alice', 'bob') and assoc.deleted = 0
join tres_table gpu on gpu.type = 'gres' and gpu.name = 'gpu'
"""


def _minutes(number: int) -> int:
    return 4 * (1 + number % 75)


def _user(number: int) -> str:
    return "alice" if number % 2 else "bob"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with booted("replay", tmp_path_factory, "--nodes", "2", "--gpus", "1") as made:
        made.deploy()
        fill(made)
        yield made


def fill(cluster: Cluster) -> None:
    show = ("sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=cluster")
    name = cluster.on("ctl1", *show).strip()
    cluster.on("ctl1", "mariadb", "slurm_acct_db", "--execute", _ROWS.format(name=name, jobs=JOBS))


def replay(cluster: Cluster, said: dict[str, Any], expect: int = 3) -> dict[str, Any]:
    """`deploy replay --json` where the site says something else."""
    words = (*DEPLOY, "replay", str(cluster.inventory), "--json", "--extra-vars", json.dumps(said))
    came: dict[str, Any] = json.loads(run(*words, expect=expect, seconds=900).stdout)
    return came


def left(cluster: Cluster) -> dict[str, str]:
    """What of a replay could be left on the controller."""
    asked = {
        "unit": "systemctl is-active deploy-replay",
        "daemons": "pgrep -c slurmctld; pgrep -c slurmdbd; pgrep -c mariadbd",
        "places": "ls -d /tmp/*deploy-replay* /var/tmp/*deploy-replay* /mnt/*; ls /run | grep deploy-replay",
        "sockets": "ss --listening --tcp --numeric --no-header | wc -l",
    }
    return {name: cluster.on("ctl1", "sh", "-c", f"{words}; true") for name, words in asked.items()}


STRICTER = [{"name": "normal", "max_wall": "04:00:00", "flags": ["DenyOnLimit"]}]


def test_a_stricter_limit_names_exactly_the_jobs_of_a_month_that_it_refuses(cluster: Cluster) -> None:
    before = left(cluster)
    came = replay(cluster, {"slurm_accounts_qos": STRICTER})
    assert came["seconds"] < _SECONDS
    assert (came["jobs"], came["shapes"], came["never"], came["accepted"]) == (JOBS, 600, 0, [])
    found: Counter[tuple[str, int]] = Counter()
    for change in came["refused"]:
        assert not change["waits"]
        assert "time limit exceeds qos max 240" in change["why"]
        for user, jobs in change["users"].items():
            found[user, change["request"]["minutes"]] += jobs
    numbers = range(1, JOBS + 1)
    assert found == Counter((_user(n), _minutes(n)) for n in numbers if _minutes(n) > 240)
    assert "secret" not in json.dumps(came)
    assert left(cluster) == before
    assert before["unit"].strip() == "inactive"


@pytest.mark.parametrize(
    ("said", "is_meant", "why"),
    [
        (
            {"slurm_accounts_qos": [{"name": "normal", "max_tres": "gres/gpu=1"}]},
            lambda n: n % 7 == 0 and n % 2 == 1,
            "request exceeds per-job max tres limit 1 for qos 'normal'",
        ),
        (
            {"slurmctld_partitions": [{"name": "batch", "default": True, "max_time": "01:00:00"}]},
            lambda n: _minutes(n) > 60,
            "Requested time limit is invalid",
        ),
        (
            {"slurmctld_partitions": [{"name": "other", "default": True}]},
            lambda n: n > 0,
            "invalid partition specified: batch",
        ),
        (
            {"slurm_accounts_users": [{"name": "alice", "accounts": ["research"]}]},
            lambda n: _user(n) == "bob",
            "Invalid account or account/partition combination specified",
        ),
        (
            {
                "slurmctld_job_submit_lua": """
function slurm_job_submit(job, partitions, user)
    if user == 2002 and job.time_limit > 240 then
        slurm.log_user("bob is in a hurry")
        return slurm.ERROR
    end
    return slurm.SUCCESS
end
function slurm_job_modify(job, record, partitions, user) return slurm.SUCCESS end
"""
            },
            lambda n: _user(n) == "bob" and _minutes(n) > 240,
            "bob is in a hurry",
        ),
    ],
    ids=["tres", "partition", "gone", "account", "script"],
)
def test_other_changes_name_theirs(
    cluster: Cluster, said: dict[str, Any], is_meant: Callable[[int], bool], why: str
) -> None:
    came = replay(cluster, said)
    found = Counter[str]()
    for change in came["refused"]:
        found.update(change["users"])
        assert why in change["why"]
        # Slurm takes what a QOS without DenyOnLimit limits, and never starts it.
        assert change["waits"] == ("slurm_accounts_qos" in said)
    assert found == Counter(_user(n) for n in range(1, JOBS + 1) if is_meant(n))
    assert came["accepted"] == []


def test_nothing_changes_where_nothing_is_said(cluster: Cluster) -> None:
    came = replay(cluster, {}, expect=0)
    assert (came["refused"], came["accepted"], came["never"]) == ([], [], 0)


def test_two_at_once_and_one_that_is_killed(cluster: Cluster) -> None:
    before = left(cluster)
    words = (*DEPLOY, "replay", str(cluster.inventory))

    def is_at_work() -> bool:
        return cluster.on("ctl1", "systemctl", "is-active", "deploy-replay", expect=None).strip() == "active"

    with subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True) as going:
        wait_until("it is at work", is_at_work, 120)
        # Held up where it is: on a busy machine the second one would come too late.
        cluster.on("ctl1", "systemctl", "kill", "--signal=STOP", "deploy-replay")
        assert "replay-at-work" in run(*words, expect=1, seconds=900).stderr
        cluster.on("ctl1", "systemctl", "kill", "--signal=CONT", "deploy-replay")
        assert is_at_work()
        os.killpg(going.pid, signal.SIGKILL)
    wait_until("nothing is left of it", lambda: left(cluster) == before, 60)


def test_an_accounting_that_is_away_is_said(cluster: Cluster) -> None:
    cluster.on("ctl1", "systemctl", "stop", "slurmdbd")
    try:
        said = run(*DEPLOY, "replay", str(cluster.inventory), expect=1).stderr
    finally:
        cluster.on("ctl1", "systemctl", "start", "slurmdbd")
    assert "replay-no-jobs" in said
    assert "Traceback" not in said


def test_slurm_does_what_was_said_when_it_comes_to_it(cluster: Cluster) -> None:
    (cluster.directory / "group_vars/slurm-cluster.yml").write_text(
        json.dumps({"slurm_accounts_qos": STRICTER})
    )
    cluster.deploy()
    job = "sbatch --output=/dev/null --mem=50M --time={} --wrap true"
    assert "Job violates accounting/QOS policy" in cluster.as_user(job.format(241), expect=1)
    assert re.search(r"Submitted batch job \d+", cluster.as_user(job.format(240)))
    came = replay(cluster, {}, expect=0)
    assert came["never"] == sum(_minutes(n) > 240 for n in range(1, JOBS + 1))
    # And what is given back is told, too.
    came = replay(cluster, {"slurm_accounts_qos": [{"name": "normal", "max_wall": "-1"}]})
    assert sum(change["jobs"] for change in came["accepted"]) == sum(
        _minutes(n) > 240 for n in range(1, JOBS + 1)
    )
