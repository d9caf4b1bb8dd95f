"""What users do: jobs, arrays, shells on nodes, GPUs; and what they may not do."""

import re

from tests.cluster.jobs import submit, wait_for_job
from tests.cluster.lab_cluster import Cluster, wait_until


def test_two_nodes_with_a_gpu_each(cluster: Cluster) -> None:
    out = cluster.as_user("srun -N2 --gpus-per-node=1 nvidia-smi -L")
    assert sorted(re.findall(r"GPU-simulated-(node\d)-0", out)) == ["node1", "node2"]


def test_arrays(cluster: Cluster) -> None:
    job = submit(cluster, "--array=0-3 -o a%a.out", "echo task $SLURM_ARRAY_TASK_ID")
    rows = ("sacct", "--noheader", "--allocations", "--parsable2", "--format", "State", "--jobs", job)
    wait_until(
        "four tasks complete", lambda: cluster.on("ctl1", *rows).split() == ["COMPLETED"] * 4, seconds=60
    )
    assert cluster.as_user("cat a0.out a1.out a2.out a3.out").splitlines() == [f"task {n}" for n in range(4)]


def test_a_signal_for_the_batch_script_leaves_the_jobs_scratch(cluster: Cluster) -> None:
    """As docs/storage.md says: one for the steps ends what keeps it, before Slurm 25.05."""

    def keeper() -> str:
        return cluster.on("node1", "pgrep", "--full", "^sleep 100000000", expect=None)

    job = submit(cluster, "-w node1 -n1 --time=2", 'trap "touch signalled" USR1; sleep 90 & wait; wait')
    wait_until("its scratch is kept", lambda: bool(keeper()), seconds=60)
    wait_for_job(cluster, job, "RUNNING")
    before = keeper()
    # Until the script has its trap, the signal would end it.
    wait_until("it waits", lambda: bool(cluster.on("node1", "pgrep", "--full", "^sleep 90", expect=None)), 60)
    cluster.as_user(f"rm -f signalled; scancel --batch --signal=USR1 {job}")
    wait_until("the script has it", lambda: "signalled" in cluster.as_user("ls"), seconds=60)
    assert keeper() == before
    cluster.as_user(f"scancel --signal=USR1 {job}")
    wait_until("the fault is still there", lambda: keeper() != before, seconds=60)
    cluster.as_user(f"scancel {job}")
    wait_for_job(cluster, job, "CANCELLED")


def test_salloc_gives_a_shell_on_the_node(cluster: Cluster) -> None:
    out = cluster.as_user(
        "script -qec 'salloc -w node2 --gres=gpu:a100:1' /dev/null <<< 'echo on:$(hostname); exit'"
    )
    assert "on:node2" in out


def test_overlapping_step_sees_the_jobs_gpu(cluster: Cluster) -> None:
    job = submit(cluster, "-w node1 --gres=gpu:1", "sleep 60")
    wait_for_job(cluster, job, "RUNNING")
    out = cluster.as_user(f"srun --jobid {job} --overlap nvidia-smi -L")
    assert out.count("GPU-simulated-node1") == 1
    shown = cluster.as_user(f"squeue --me -h -o %A; scontrol show job {job}; scancel {job}")
    assert shown.splitlines()[0] == job
    assert "gres/gpu:a100=1" in shown
    wait_for_job(cluster, job, "CANCELLED")


def test_a_user_sees_what_a_job_used(cluster: Cluster) -> None:
    busy = "import time; x = bytearray(100 << 20); end = time.time() + 8"
    busy += "; all(time.time() < end for _ in iter(int, 1))"
    job = submit(cluster, "-n1 --mem=200M --time=2 --acctg-freq=1", f'srun python3 -c "{busy}"')
    wait_for_job(cluster, job, "COMPLETED")

    def figures() -> dict[str, float]:
        said = cluster.as_user(f"seff {job}")
        return {name: float(share) for name, share in re.findall(r"(\w+) Efficiency: ([0-9.]+)%", said)}

    wait_until("its processors are accounted", lambda: figures()["CPU"] > 0, seconds=60)
    assert "every 30 seconds" in cluster.as_user(f"seff {job}")
    found = figures()
    assert 50 <= found["Memory"] <= 100, found
    # How much of its processor it got is the machine's affair.
    assert 1 <= found["CPU"] <= 110, found
    assert "no job 99999 that you may see" in cluster.as_user("seff 99999 2>&1; true")


def test_memory_is_enforced(cluster: Cluster) -> None:
    eat = "python3 -c 'x = bytearray(400 * 1024 * 1024); print(len(x))'"
    job = cluster.as_user(f'sbatch --parsable --mem=64M <<< "#!/bin/sh\n{eat}"').strip()
    wait_for_job(cluster, job, "OUT_OF_MEMORY")


def test_one_gpu_jobs_have_their_own_device(cluster: Cluster) -> None:
    probe = (
        "nvidia-smi -L; for n in 0 1; do python3 -c \"open('/dev/nvidia$n')\" 2>&1 | tail -1; done; sleep 8"
    )
    for name in ("one", "two"):
        cluster.as_user(f"sbatch -w node1 -n1 --gpus=1 -o {name}.out <<'EOF'\n#!/bin/sh\n{probe}\nEOF")
    wait_until("both jobs have ended", lambda: not cluster.as_user("squeue --me -h").strip(), seconds=60)
    answers = [cluster.as_user(f"cat {name}.out") for name in ("one", "two")]
    devices = [re.findall(r"GPU-simulated-node1-(\d)", answer) for answer in answers]
    assert sorted(devices) == [["0"], ["1"]]
    assert all(answer.count("Operation not permitted") == 1 for answer in answers), answers


def test_a_user_without_an_account_may_not_submit(cluster: Cluster) -> None:
    cluster.on("login1", "useradd", "--system", "--create-home", "--home-dir", "/var/lib/guest", "guest")
    cluster.on("ctl1", "useradd", "--system", "guest")
    out = cluster.as_user("srun hostname", user="guest", expect=1)
    assert "Invalid account" in out


def test_a_job_may_ask_for_room_on_the_nodes_scratch(cluster: Cluster) -> None:
    assert cluster.as_user("srun --quiet --tmp=1G -w node1 hostname").strip() == "node1"
    assert "not available" in cluster.as_user("srun --tmp=900T hostname", expect=1)
