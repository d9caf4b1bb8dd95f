from typing import Any

import pytest

from deploy.validate.result import Outcome
from tests.unit.validate.clusters import (
    NODES,
    Change,
    Cluster,
    by_outcome,
    expect_fault,
    probe,
    refused,
    row,
    run,
)

_SCOPE = "0::/system.slice/node1_slurmstepd.scope"


def _done(kind: str, node: str, what: Any) -> Change:  # noqa: ANN401 - as JSON has it
    return lambda cluster: cluster.done[kind].update({node: what})


def _job(kind: str, what: Any) -> Change:  # noqa: ANN401 - as JSON has it
    return lambda cluster: cluster.done.update({kind: what})


def _probed(on: str, **changes: object) -> Change:
    return lambda cluster: cluster.done["probes"][on]["answers"][0].update(changes)


def _rows(prefix: str, **changes: str) -> Change:
    def change(cluster: Cluster) -> None:
        for found in cluster.done["accounting"]:
            if found["JobID"].startswith(prefix):
                found.update(changes)

    return change


def _no_rows(prefix: str) -> Change:
    def change(cluster: Cluster) -> None:
        left = [found for found in cluster.done["accounting"] if not found["JobID"].startswith(prefix)]
        cluster.done["accounting"] = left

    return change


def _ssh(node: str, **changes: object) -> Change:
    return lambda cluster: cluster.done["ssh"][node].update(changes)


def _left(*lines: str) -> Change:
    return lambda cluster: cluster.leftovers.update(node1={"leftovers": [*lines]})


def _gpus(*opened: tuple[str, ...], at_once: bool = True) -> Change:
    """The devices that the two jobs with a GPU on node1 could open."""

    def change(cluster: Cluster) -> None:
        for number, (found, devices) in enumerate(zip(cluster.done["single"]["node1"], opened, strict=True)):
            begin = 100.0 if at_once else 100.0 + 10 * number
            answer = {"devices": dict.fromkeys(devices, "open"), "from": begin, "to": begin + 2}
            found["answers"][0].update(answer)

    return change


FIRST, SECOND = "/dev/nvidia0", "/dev/nvidia1"
OUT = "srun: error: Unable to allocate resources: Invalid account"
WRONG: dict[str, tuple[str, Change, dict[str, str], str]] = {
    "a job is refused": (
        "job",
        _done("probes", "node1", refused(f"words\n{OUT}\n")),
        {"node1": OUT},
        "scontrol show node node1",
    ),
    "a job does not end": (
        "job",
        _done("probes", "node1", run(code=None, seconds=60.0)),
        {"node1": "no end after 60 s"},
        "journalctl -u slurmd -e   (on ctl1 and node1)",
    ),
    "a job says nothing": (
        "job",
        _done("probes", "node1", run(code=0)),
        {"node1": "exit code 0"},
        "scontrol show node node1",
    ),
    "a job runs elsewhere": (
        "job",
        _probed("node1", node="node2"),
        {"node1": "the job ran on node2"},
        "scontrol show node node1",
    ),
    "no common job": (
        "job-on-all",
        _job("together", refused(OUT)),
        {"": OUT},
        "scontrol show config",
    ),
    "a node is missing in the common job": (
        "job-on-all",
        _job("together", run(probe("node1", 31), code=1, said=OUT)),
        {"node2": f"no task of the common job answered: {OUT}"},
        "scontrol show node node2",
    ),
    "the array is refused": (
        "array",
        lambda cluster: cluster.done.update({"array": "", "trouble": ["sbatch: no"]}),
        {"": "sbatch: no"},
        "scontrol show partition deploy-validate",
    ),
    "tasks fail": (
        "array",
        _rows("41_1", State="FAILED"),
        {"": "job 41: COMPLETED, FAILED, COMPLETED, COMPLETED in accounting"},
        "sacct --jobs=41",
    ),
    "no task": ("array", _no_rows("41_"), {"": "job 41: no task in accounting"}, "sacct --jobs=41"),
    "another home": (
        "shared-home",
        _probed("node1", shared={"error": "/home/x: No such file or directory"}),
        {"node1": "the login node's file is not there: /home/x: No such file or directory"},
        "findmnt --target /home   (on node1 and login1)",
    ),
    "another file": (
        "shared-home",
        _probed("node1", shared={"nonce": "beef"}),
        {"node1": "another file than the login node's is there"},
        "findmnt",
    ),
    "nothing comes back": (
        "shared-home",
        _done("shared", "node1", "No such file or directory"),
        {"node1": "the node's file is not on the login node: No such file or directory"},
        "findmnt",
    ),
    "a file stays": (
        "private-tmp",
        _left("/tmp/deploy-validate-0a1b", "process: sleep"),
        {"node1": "a job's file is still there: /tmp/deploy-validate-0a1b"},
        "job_container.conf   (on node1)",
    ),
    "no TMPDIR": (
        "private-tmp",
        _probed("node1", private={"TMPDIR": "/scratch/1", "error": "/scratch/1: Permission denied"}),
        {"node1": "a job cannot write there: /scratch/1: Permission denied"},
        "job_container.conf",
    ),
    "a process stays": (
        "nothing-left",
        _left("/tmp/deploy-validate-0a1b", "process: sleep 600"),
        {"node1": "process: sleep 600"},
        "proctrack   (on node1)",
    ),
    "all CPUs": (
        "cpu-binding",
        _probed("node1", cpus=4),
        {"node1": "a job with 1 CPUs may use 4"},
        "taskplugin",
    ),
    "all memory": (
        "memory-limit",
        _done("memory", "node1", run(code=0)),
        {"node1": "a job used three times its memory and was not ended"},
        "constrainram",
    ),
    "no memory": (
        "memory-limit",
        lambda cluster: (_no_rows("70")(cluster), _done("memory", "node1", refused("no python3"))(cluster)),
        {"node1": "it ended, but not for its memory: no python3"},
        "scontrol show node node1",
    ),
    "no time limit": (
        "time-limit",
        _job("limit", {"job": "61", "why": "", "states": ["RUNNING"], "seconds": 120.0}),
        {"": "job 61 with one minute is RUNNING after 120 s"},
        "overtimelimit",
    ),
    "a job of a minute is refused": (
        "time-limit",
        _job("limit", {"job": "", "why": OUT, "states": [], "seconds": 0.0}),
        {"": OUT},
        "scontrol show partition",
    ),
    "a job with a GPU has two": (
        "gpu-binding",
        _gpus((FIRST, SECOND), (SECOND,)),
        {
            "node1": f"a job with one GPU could open 2: {FIRST}, {SECOND}; "
            "two jobs with one GPU each had the same at once"
        },
        "gres.conf   (on node1)",
    ),
    "a job with a GPU has none": (
        "gpu-binding",
        _gpus((), (SECOND,)),
        {"node1": "a job with one GPU could open 0: none"},
        "gres.conf",
    ),
    "two jobs have one": (
        "gpu-binding",
        _gpus((FIRST,), (FIRST,)),
        {"node1": "two jobs with one GPU each had the same at once"},
        "gres.conf",
    ),
    "a job with all GPUs has one": (
        "gpu-binding",
        lambda c: c.done["all_gpus"]["node1"]["answers"][0].update(devices={FIRST: "open", SECOND: "EPERM"}),
        {"node1": f"a job with all 2 GPUs could open 1: {FIRST}"},
        "constrain",
    ),
    "no job with GPUs": (
        "gpu-binding",
        lambda c: (
            c.done["single"].update(node1=[refused(OUT)]),
            c.done["all_gpus"].update(node1=refused("no")),
        ),
        {"node1": f"a job with one GPU: {OUT}; a job with all GPUs: no"},
        "constrain",
    ),
    "no row": (
        "accounting",
        _no_rows("11"),
        {"node1": "job 11 is not in accounting"},
        "sacct --jobs=11; sdiag   (on ctl1)",
    ),
    "a wrong row": (
        "accounting",
        _rows("11", QOS="normal", State="RUNNING", AllocTRES="cpu=1,node=1"),
        {
            "node1": "job 11: QOS is normal, not deploy-validate; State is RUNNING, not COMPLETED; "
            "no mem in AllocTRES"
        },
        "sacct --jobs=11",
    ),
    "no GPU in a row": (
        "accounting",
        _rows("21", AllocTRES="cpu=1,mem=100M,node=1"),
        {"node1": "job 21 had a GPU, accounting has cpu=1,mem=100M,node=1"},
        "AccountingStorageTRES",
    ),
    "everybody gets in": (
        "ssh-gate",
        _ssh("node1", without=run(said="0::/")),
        {"node1": "a user without a job there got in"},
        "deploy cluster inventory.ini --limit node1 --full",
    ),
    "nobody gets in": (
        "ssh-gate",
        _ssh("node1", without=run(code=255, said="Connection refused")),
        {"node1": "refused, but not for want of a job: Connection refused"},
        "journalctl -u ssh",
    ),
    "refused with a job": (
        "ssh-gate",
        _ssh("node1", within=run(code=255, said="Connection closed")),
        {"node1": "a user with a job there was refused: Connection closed"},
        "journalctl -u ssh",
    ),
    "refused with a job and told why": (
        "ssh-gate",
        _ssh("node1", within=run(code=255, said="pam_slurm_adopt: failed to adopt\nConnection closed")),
        {"node1": "a user with a job there was refused: pam_slurm_adopt: failed to adopt"},
        "journalctl -u ssh",
    ),
    "not in the job": (
        "ssh-gate",
        _ssh("node1", within=run(said="0::/user.slice")),
        {"node1": "the login is not in the job's cgroup"},
        "journalctl -u ssh",
    ),
    "in another job": (
        "ssh-gate",
        _ssh("node1", step=run(said=f"{_SCOPE}/sB/step_0/user"), within=run(said=f"{_SCOPE}/sA/step_extern")),
        {"node1": "the login is not in the job's cgroup"},
        "journalctl -u ssh",
    ),
    "in a job with a longer number": (
        "ssh-gate",
        _ssh("node1", within=run(said=f"{_SCOPE}/job_512/step_extern")),
        {"node1": "the login is not in the job's cgroup"},
        "journalctl -u ssh",
    ),
    "no container": (
        "containers",
        _done("container", "node1", refused("srun: unrecognized option '--container-image'")),
        {"node1": "srun: unrecognized option '--container-image'"},
        "srun -w node1 --container-image=IMAGE",
    ),
    "no image": (
        "containers",
        _done("container", "node1", run(said="NAME=Debian")),
        {"node1": "the job ran on the host instead of in its container"},
        "(on node1)",
    ),
    "a rank is missing": (
        "mpi",
        lambda cluster: cluster.done["mpi"]["answers"].pop(),
        {"": "3 of 4 ranks answered"},
        "srun --mpi=list",
    ),
    "four programs with one rank": (
        "mpi",
        lambda c: [answer.update(ranks=1) for answer in c.done["mpi"]["answers"]],
        {"": "4 of 4 ranks answered"},
        "MpiDefault",
    ),
    "no MPI": (
        "mpi",
        _job("mpi", {**refused("libmpi.so.40: cannot open shared object file"), "expected": 4}),
        {"": "libmpi.so.40: cannot open shared object file"},
        "srun --mpi=list",
    ),
    "a rank that crashed": (
        "mpi",
        _job(
            "mpi",
            {
                **refused(
                    "srun: error: node2: task 2: Segmentation fault\n"
                    "srun: Terminating StepId=17.0\n"
                    "srun: error: node1: task 1: Killed"
                ),
                "expected": 4,
            },
        ),
        {"": "srun: error: node2: task 2: Segmentation fault"},
        "srun --mpi=list",
    ),
}


@pytest.mark.parametrize(("check", "change", "messages", "hint"), WRONG.values(), ids=WRONG)
def test_a_fault_is_found_where_it_is(
    check: str, change: Change, messages: dict[str, str], hint: str
) -> None:
    expect_fault(check, change, messages, hint)


UNMEASURED: dict[str, tuple[str, Change, dict[str, str]]] = {
    "no node took a job": ("job-on-all", _job("together", None), {"": "no node could take a job"}),
    "the array waits": (
        "array",
        _rows("41_3", State="PENDING"),
        {"": "3 of 4 tasks of job 41 completed, others still wait"},
    ),
    "--quick": (
        "time-limit",
        lambda cluster: cluster.done.pop("limit"),
        {"": "takes more than a minute; left out by --quick"},
    ),
    "the long job waits": (
        "time-limit",
        _job("limit", {"job": "61", "why": "", "states": ["PENDING"], "seconds": 120.0}),
        {"": "job 61 got no resources"},
    ),
    "no job with GPUs": (
        "gpu-binding",
        lambda cluster: cluster.done["single"].pop("node1"),
        {"node1": "no job ran there"},
    ),
    "interrupted between jobs with GPUs": (
        "gpu-binding",
        lambda cluster: cluster.done["all_gpus"].pop("node1"),
        {"node1": "no job ran there"},
    ),
    "no row for the CPUs": ("cpu-binding", _no_rows("11"), {"node1": "job 11 is not in accounting"}),
    "not looked at afterwards": (
        "private-tmp",
        lambda cluster: cluster.leftovers.pop("node1"),
        {"node1": "the node could not be looked at afterwards"},
    ),
    "homes of its own": (
        "ssh-gate",
        lambda c: (
            _probed("node1", shared={"error": "x"})(c),
            _ssh("node1", without=run(code=255, said="Permission denied (publickey)"))(c),
        ),
        {"node1": "its homes are not those of the login node, so it knows no keys"},
    ),
    "no job for the login": (
        "ssh-gate",
        _ssh("node1", within=None, why="PENDING"),
        {"node1": "no job for the login started: PENDING"},
    ),
    "jobs that do not end": (
        "ssh-gate",
        _ssh("node1", without=None, within=None, why="earlier jobs of the validation are still there"),
        {"node1": "earlier jobs of the validation are still there"},
    ),
    "no login": ("ssh-gate", lambda cluster: cluster.done["ssh"].pop("node1"), {"node1": "no job ran there"}),
    "no container": (
        "containers",
        lambda cluster: cluster.done["container"].pop("node1"),
        {"node1": "no job ran there"},
    ),
    "no image": (
        "containers",
        lambda c: c.done.update({"container": {}, "trouble": ["the image of the test container: no"]}),
        dict.fromkeys(NODES, "the image of the test container: no"),
    ),
    "no MPI job": ("mpi", _job("mpi", None), {"": "no node could take a job"}),
}


@pytest.mark.parametrize(("check", "change", "messages"), UNMEASURED.values(), ids=UNMEASURED)
def test_what_could_not_be_seen_is_not_measured(check: str, change: Change, messages: dict[str, str]) -> None:
    cluster = Cluster()
    change(cluster)
    results = cluster.results(check)
    assert by_outcome(results, Outcome.NOT_MEASURED) == messages
    assert by_outcome(results, Outcome.FAILED) == {}
    assert not messages.keys() & by_outcome(results, Outcome.PASSED).keys()


@pytest.mark.parametrize(
    ("check", "lacks"),
    [
        ("gpu-binding", {"gpus": {}}),
        ("ssh-gate", {"ssh_nodes": []}),
        ("containers", {"container_nodes": []}),
        ("mpi", {"has_mpi": False}),
    ],
)
def test_what_the_site_does_not_have_is_not_applicable(check: str, lacks: dict[str, Any]) -> None:
    cluster = Cluster()
    assert cluster.plan is not None
    cluster.plan |= lacks
    (result,) = cluster.results(check)
    assert result.outcome is Outcome.NOT_APPLICABLE


def test_a_login_whose_probe_said_nothing() -> None:
    cluster = Cluster()
    cluster.done["probes"]["node1"] = run()
    _ssh("node1", without=run(code=255, said="Permission denied (publickey)"))(cluster)
    assert by_outcome(cluster.results("ssh-gate"), Outcome.FAILED).keys() == {"node1"}


def test_a_login_is_in_a_job_whose_directory_has_not_its_number() -> None:
    """As with Slurm 26.05 and cgroups v2."""
    cluster = Cluster()
    here = f"{_SCOPE}/sAS9M8ETZKT000"
    _ssh("node1", step=run(said=f"{here}/step_0/user/task_0\n"), within=run(said=f"{here}/step_extern/user"))(
        cluster
    )
    assert by_outcome(cluster.results("ssh-gate"), Outcome.PASSED).keys() == {*NODES}


def test_a_step_that_says_that_it_ended_for_its_memory_needs_no_row() -> None:
    cluster = Cluster()
    _no_rows("70")(cluster)
    said = "slurmstepd-node1: error: Detected 1 oom-kill event(s) in StepId=21.0. Some of your processes"
    _done("memory", "node1", run(code=1, said=said))(cluster)
    results = cluster.results("memory-limit")
    assert by_outcome(results, Outcome.PASSED)["node1"] == "it ended for its memory, as its step says"
    assert by_outcome(results, Outcome.FAILED) == {}


def test_jobs_one_after_the_other_may_have_the_same_gpu() -> None:
    cluster = Cluster()
    _gpus((FIRST,), (FIRST,), at_once=False)(cluster)
    assert by_outcome(cluster.results("gpu-binding"), Outcome.FAILED) == {}


def test_measurements_have_a_unit() -> None:
    for check in ("job", "job-on-all", "mpi", "speed"):
        assert all(v.value is not None and v.unit == "s" for v in Cluster().results(check))


def test_rows_are_found_by_their_job() -> None:
    cluster = Cluster()
    cluster.done["accounting"] = [row(number, "node1") for number in range(5)]
    assert cluster.context().row("3") == row(3, "node1")
    assert cluster.context().row("9") is None
