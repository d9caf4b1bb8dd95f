"""What happens where users submit: a filter in their own commands, jobs at set times."""

from collections.abc import Iterator

import pytest
import yaml

from tests.cluster.jobs import end_job, job_state, submit, wait_for_job
from tests.cluster.lab_cluster import Cluster, booted, wait_until

pytestmark = pytest.mark.more

FILTER = """\
function slurm_cli_setup_defaults(options, early)
    options["comment"] = "by default"
    return slurm.SUCCESS
end
function slurm_cli_pre_submit(options, offset)
    if options["job-name"] == "forbidden" then
        slurm.log_error("%s: no job of this name", options["type"])
        return slurm.ERROR
    end
    return slurm.SUCCESS
end
function slurm_cli_post_submit(offset, job, step)
    return slurm.SUCCESS
end
"""
EXAMPLES = [
    {"name": "a default", "expect": "accepted", "sets": {"comment": "by default"}},
    {"name": "no", "command": "srun", "options": "--job-name=forbidden", "expect": "refused", "says": "no"},
]
COMMANDS = {"sbatch": "--wrap=true", "srun": "true", "salloc": "true"}
ONCE_A_MINUTE = """\
cat > entries <<'END'
#SCRON --time=1
#SCRON --output=said-%j
* * * * * hostname
END
scrontab entries
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Debian 12's Slurm ships no filter, and has no scrontab."""
    with booted("submission", tmp_path_factory, "--nodes", "1") as made:
        made.deploy()
        yield made


def declare(cluster: Cluster, **said: object) -> None:
    """What the controller is told beside what the lab says of it; None takes a variable away."""
    file = cluster.directory / "group_vars/slurm-master.yml"
    known = yaml.safe_load(file.read_text()) | said
    file.write_text(yaml.safe_dump({name: value for name, value in known.items() if value is not None}))


def brought(cluster: Cluster, expect: int = 0) -> str:
    return cluster.deploy("--limit", "ctl1", "--tags", "slurmctld", expect=expect).stdout


def test_a_filter_comes_to_all_who_submit_and_goes(plain: Cluster) -> None:
    job = submit(plain, "", "sleep 600")
    wait_for_job(plain, job, "RUNNING")
    declare(plain, slurmctld_cli_filter_lua=FILTER, slurmctld_cli_filter_examples=EXAMPLES)
    brought(plain)
    for host in ("login1", "node1"):
        for command, rest in COMMANDS.items():
            said = plain.as_user(f"{command} --job-name=forbidden {rest}", host=host, expect=1)
            assert f"{command}: no job of this name" in said
    step = plain.as_user("sbatch --parsable --wait --wrap 'srun --job-name=forbidden true'", expect=1)
    assert "srun: no job of this name" in plain.as_user(f"cat slurm-{step.strip()}.out")
    of_a_user = plain.as_user("sbatch --parsable --hold --wrap=true").strip()
    assert "Comment=by default" in plain.on("ctl1", "scontrol", "show", "job", of_a_user)
    end_job(plain, of_a_user)

    declare(plain, slurmctld_cli_filter_lua=FILTER.replace("return slurm.ERROR", "return slurm.NO(", 1))
    assert "cli_filter.lua:" in brought(plain, expect=1)
    assert "no job of this name" in plain.as_user("srun --job-name=forbidden true", expect=1)

    declare(plain, slurmctld_cli_filter_lua=None, slurmctld_cli_filter_examples=None)
    brought(plain)
    plain.on("ctl1", "test", "!", "-e", "/etc/slurm/cli_filter.lua")
    for host in ("login1", "node1"):
        accepted = plain.as_user("sbatch --parsable --hold --job-name=forbidden --wrap=true", host=host)
        end_job(plain, accepted.strip())
    assert job_state(plain, job) == "RUNNING"
    end_job(plain, job)


def test_jobs_at_set_times(plain: Cluster) -> None:
    assert "scrontab is disabled on this cluster" in plain.as_user(ONCE_A_MINUTE, expect=1)
    declare(plain, slurmctld_scrontab=True)
    brought(plain)
    plain.as_user(ONCE_A_MINUTE)
    assert "* * * * * hostname" in plain.as_user("scrontab -l")
    wait_until("its job has run", lambda: plain.as_user("cat said-*", expect=None).startswith("node1"), 150)
    job = plain.as_user("squeue --me --noheader --format=%A").strip()
    plain.as_user(f"scancel {job}")
    assert "\n#DISABLED: * * * * * hostname\n" in plain.as_user("scrontab -l")
    wait_until("nothing of it waits", lambda: not plain.as_user("squeue --me --noheader"), 60)
    plain.as_user("scrontab -r")
    assert "hostname" not in plain.as_user("scrontab -l", expect=None)
