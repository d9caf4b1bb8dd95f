"""A round of a burn-in on its node: all CPUs, the memory and all GPUs at work, and every result checked.

Run by a job of the validation user. Its argument is a JSON object: ``seconds``, ``answer`` (the file into
which it writes what it saw), ``directory`` (where it may work), ``memory_mb``, ``gpus``, ``hpl`` (ways to
start programs that solve HPL's system; the first that is there is taken) and ``python`` (the way to start the
load of a GPU). CPUs run HPL where it is there; else what this program computes itself.
"""

from __future__ import annotations

import glob
import hashlib
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any

MISSING = 127
_STEPS = 200_000
RIGHT = 0.015305425027838155
"""What so many steps of ``iterated`` end with on every machine that computes doubles as IEEE 754 says."""
_BLOCK = hashlib.shake_256(b"deploy").digest(1 << 20)
_LARGEST_MB = 1024
_SMALLEST_N, _LARGEST_N, _NB = 1000, 400_000, 192
_HPL_SECONDS, _LONGEST_SHARE = 120, 8.0
_SLACK = 5
_HPCC_SAYS = "hpccoutf.txt"
_RESULT = re.compile(r"^W[RC]\S+\s+(\d+)\s+\d+\s+\d+\s+\d+\s+(\S+)\s+(\S+)\s*$")
_SAMPLE_SECONDS = 5
_GPU_FIELDS = (
    "index,ecc.errors.uncorrected.volatile.total,ecc.errors.corrected.volatile.total,"
    "clocks_throttle_reasons.hw_slowdown,clocks_throttle_reasons.hw_thermal_slowdown,"
    "clocks_throttle_reasons.sw_thermal_slowdown,clocks_throttle_reasons.hw_power_brake_slowdown,temperature.gpu"
)
_HPL = """HPLinpack benchmark input file
made by deploy validate
HPL.out      output file name (if any)
6            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{n}          Ns
1            # of NBs
{nb}         NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
{p}          Ps
{q}          Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
"""


def read_hpl(text: str) -> list[dict[str, Any]]:
    """The systems that HPL solved, as it or HPCC prints them: size, speed, and whether the result holds."""
    found: list[dict[str, Any]] = []
    for line in text.splitlines():
        result = _RESULT.match(line.strip())
        if result:
            n, seconds, gflops = int(result[1]), float(result[2]), float(result[3])
            found.append({"n": n, "seconds": seconds, "gflops": gflops, "is_right": None})
        elif found and line.lstrip().startswith("||Ax-b||") and found[-1]["is_right"] is not False:
            found[-1]["is_right"] = line.rstrip().endswith("PASSED")
    return found


def grid(ranks: int) -> tuple[int, int]:
    """The most square grid of so many processes."""
    rows = next(p for p in range(int(ranks**0.5), 0, -1) if ranks % p == 0)
    return rows, ranks // rows


def next_size(gflops: float, seconds: float, memory_mb: float) -> int:
    """The order of the system that takes so long at that speed, and fits into a part of the memory."""
    by_time = (1.5 * gflops * 1e9 * seconds) ** (1 / 3)
    by_memory = (0.5 * memory_mb * 1e6 / 8) ** 0.5
    size = int(min(by_time, by_memory, _LARGEST_N))
    return max(_SMALLEST_N, size // _NB * _NB)


def iterated() -> float:
    """A chaotic sum in doubles: one wrong bit anywhere, and the end is another."""
    value = 0.4
    for _ in range(_STEPS):
        value = 3.99 * value * (1.0 - value)
    return value


def filled(megabytes: int) -> bytearray:
    """So much memory with known contents; never twice of it at once."""
    held = bytearray()
    for _ in range(megabytes):
        held += _BLOCK
    return held


def own_work(deadline: float, megabytes: int, right: float, pipe: Any) -> None:  # noqa: ANN401 - a connection
    """Of one CPU: computes and reads memory again and again; tells how often, and what was wrong."""
    digest = hashlib.sha256()
    for _ in range(megabytes):
        digest.update(_BLOCK)
    expected, held = digest.hexdigest(), filled(megabytes)
    pieces, wrong = 0, []
    began = time.time()
    # Once in any case: a busy machine may come to it only when the time is over.
    while not pieces or time.time() < deadline:
        value = iterated()
        if value != right:
            wrong.append(f"arithmetic gave {value!r} instead of {right!r}")
        if hashlib.sha256(held).hexdigest() != expected:
            wrong.append(f"{megabytes} MiB of memory are not what was written")
            held = filled(megabytes)
        pieces += 1
    pipe.send({"pieces": pieces, "seconds": time.time() - began, "wrong": wrong[:3]})


def own_load(seconds: float, memory_mb: float) -> dict[str, Any]:
    """All CPUs at work without any program but this."""
    cpus = len(os.sched_getaffinity(0))
    megabytes = max(1, min(_LARGEST_MB, int(memory_mb / 2 / cpus)))
    deadline = time.time() + seconds
    context = multiprocessing.get_context("fork")
    workers = []
    for _ in range(cpus):
        ours, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=own_work, args=(deadline, megabytes, RIGHT, theirs), daemon=True)
        worker.start()
        theirs.close()
        workers.append((worker, ours))
    answers = []
    for worker, ours in workers:
        try:
            answers.append(ours.recv())
        except EOFError:
            worker.join()
            answers.append(
                {"pieces": 0, "seconds": seconds, "wrong": [f"a process ended with {worker.exitcode}"]}
            )
    wrong = [text for answer in answers for text in answer["wrong"]]
    rate = sum(answer["pieces"] / answer["seconds"] for answer in answers if answer["pieces"])
    return {
        "what": "own",
        "unit": "pieces/s",
        "rate": rate,
        "rounds": sum(a["pieces"] for a in answers),
        "wrong": wrong,
    }


def hpl(way: list[str], seconds: float, memory_mb: float, directory: str) -> dict[str, Any] | None:
    """HPL on all CPUs until the time is over; None when it is not there."""
    ranks = len(os.sched_getaffinity(0))
    rows, columns = grid(ranks)
    launcher = (
        ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks)]
        if shutil.which("mpirun")
        else []
    )
    if not launcher:
        rows, columns = 1, 1
    # Ranks of its own, not those of the job: Slurm's variables would make them one program.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "PMI", "OMPI_"))}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"} if launcher else {}
    deadline = time.time() + seconds
    answer: dict[str, Any] = {"what": "HPL", "unit": "GFLOP/s", "rate": 0.0, "rounds": 0, "wrong": []}
    size = _SMALLEST_N
    while (left := deadline - time.time()) > _SLACK or not answer["rounds"]:
        for name in ("HPL.dat", "hpccinf.txt"):
            with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                file.write(_HPL.format(n=size, nb=_NB, p=rows, q=columns))
        began = time.time()
        with suppress(FileNotFoundError):
            # HPCC adds to what is there.
            os.unlink(os.path.join(directory, _HPCC_SAYS))
        code, text = finished([*launcher, *way], directory, environment, max(left, 30.0))
        if code == MISSING and not answer["rounds"]:
            return None
        if code is None:
            break  # The time is over; what was not finished is not judged.
        results = read_hpl(text + contents(os.path.join(directory, _HPCC_SAYS)))
        if code != 0 or not results:
            answer["wrong"].append(f"it ended with {code}: {last(text)}")
            break
        for result in results:
            answer["rounds"] += 1
            answer["rate"] = max(answer["rate"], result["gflops"])
            if not result["is_right"]:
                answer["wrong"].append(f"HPL's residual is too large (N={result['n']})")
        # HPCC measures other things, too, which take their time.
        share = (time.time() - began) / max(results[-1]["seconds"], 0.01)
        left_for_it = min(_HPL_SECONDS, left / 4) / min(max(share, 1.0), _LONGEST_SHARE)
        size = next_size(results[-1]["gflops"], left_for_it, memory_mb)
    return answer


def finished(
    argv: list[str], directory: str, environment: dict[str, str], seconds: float
) -> tuple[int | None, str]:
    """Exit code and output of a program; null when it was ended after its time."""
    with subprocess.Popen(
        argv,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            text, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, ""
    return process.returncode, text


def contents(path: str) -> str:
    """A file's text; nothing where there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def last(text: str) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def cpu_load(given: dict[str, Any]) -> dict[str, Any]:
    """HPL where it is there; else the own load."""
    os.makedirs(given["directory"], exist_ok=True)
    granted = 0.8 * float(os.environ.get("SLURM_MEM_PER_NODE") or 0)
    memory = min(size for size in (float(given["memory_mb"]), granted, free_megabytes()) if size > 0)
    for way in given["hpl"]:
        if is_there(way):
            answer = hpl(way, given["seconds"], memory, given["directory"])
            if answer is not None:
                return answer
    return own_load(given["seconds"], memory)


def is_there(way: list[str]) -> bool:
    """Whether a program can be started: its shell looks for it, and ends when nothing else is asked."""
    *shell, script, command = way
    look = script.rsplit("exec ", 1)[0]
    done = subprocess.run([*shell, look, command], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.returncode == 0


def free_megabytes() -> float:
    """The memory that is available."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", contents("/proc/meminfo"), re.MULTILINE)
    return int(found[1]) / 1024 if found else 256.0


def gpu_load(given: dict[str, Any]) -> list[dict[str, Any]]:
    """Every GPU multiplies matrices; by GPU, what came of it."""

    def one(index: int) -> dict[str, Any]:
        argument = json.dumps({"gpu": index, "seconds": given["seconds"]})
        code, text = finished(
            [*given["python"], argument], given["directory"], dict(os.environ), given["seconds"] + 120
        )
        lines = [line.partition("deploy-probe:")[2] for line in text.splitlines() if "deploy-probe:" in line]
        if code == 0 and lines:
            return dict(json.loads(lines[-1]))
        missing = code == MISSING
        return {"gpu": index, "missing": missing, "wrong": [] if missing else [f"{code}: {last(text)}"]}

    answers: list[dict[str, Any]] = [{} for _ in range(given["gpus"])]

    def into(index: int) -> None:
        answers[index] = one(index)

    threads = [threading.Thread(target=into, args=(index,)) for index in range(given["gpus"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def counters() -> dict[str, int]:
    """What the kernel counted of throttled cores and of memory errors, as far as it counts."""
    found = {}
    for name, pattern in (
        ("throttled", "/sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count"),
        ("memory errors corrected", "/sys/devices/system/edac/mc/mc*/ce_count"),
        ("memory errors", "/sys/devices/system/edac/mc/mc*/ue_count"),
    ):
        values = [contents(path).strip() for path in glob.glob(pattern)]
        if values:
            found[name] = sum(int(value) for value in values if value.isdigit())
    return found


def gpu_sample() -> list[list[str]]:
    """A line per GPU of what nvidia-smi says of errors and clocks; none where it says nothing."""
    try:
        done = subprocess.run(
            ["nvidia-smi", f"--query-gpu={_GPU_FIELDS}", "--format=csv,noheader,nounits"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    if done.returncode != 0:
        return []
    return [[word.strip() for word in line.split(",")] for line in done.stdout.splitlines() if line.strip()]


def main() -> None:
    """Load, watched; the answer comes into its file whole or not at all."""
    given = json.loads(sys.argv[1])
    began = time.time()
    before, samples = counters(), []
    is_over = threading.Event()

    def watch() -> None:
        while given["gpus"]:
            samples.append(gpu_sample())
            if is_over.wait(_SAMPLE_SECONDS):
                break

    watcher = threading.Thread(target=watch)
    watcher.start()
    gpus: list[dict[str, Any]] = []
    burner = threading.Thread(target=lambda: gpus.extend(gpu_load(given)))
    os.makedirs(given["directory"], exist_ok=True)
    if given["gpus"]:
        burner.start()
    cpu = cpu_load(given)
    if given["gpus"]:
        burner.join()
    is_over.set()
    watcher.join()
    if given["gpus"]:
        samples.append(gpu_sample())
    after = counters()
    answer = {
        "node": os.environ.get("SLURMD_NODENAME", ""),
        "job": os.environ.get("SLURM_JOB_ID", ""),
        "seconds": time.time() - began,
        "cpu": cpu,
        "gpus": gpus,
        "counted": {name: after[name] - before[name] for name in after if name in before},
        "samples": [sample for sample in samples if sample],
    }
    shutil.rmtree(given["directory"], ignore_errors=True)
    with open(f"{given['answer']}.new", "w", encoding="utf-8") as file:
        file.write(json.dumps(answer))
    os.replace(f"{given['answer']}.new", given["answer"])


if __name__ == "__main__":
    main()
