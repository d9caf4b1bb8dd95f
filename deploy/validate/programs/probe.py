"""What a validation's job says of itself on its node, as one line of JSON that begins with a mark.

Run by srun as the validation user. Its argument is a JSON object: ``marker`` (the name of a file that it
leaves in its private directories), ``shared`` (a directory that all hosts see), ``hold`` (seconds to stay).
"""

import errno
import glob
import json
import os
import socket
import sys
import time

MARK = "deploy-probe:"
_ROUNDS = 3
_LOOPS = 1_500_000
# How long somebody who takes the processor away is waited for. A node that is slow by itself stays so.
_PATIENCE_SECONDS = 8


def opened(path: str) -> str:
    """What happens to somebody who opens a device: ``open``, or the name of the error."""
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError as problem:
        return errno.errorcode.get(problem.errno or 0, "?")
    return "open"


def seconds_of_work() -> float:
    """The time that a fixed piece of work takes: the best of a few, and of more on a shared processor."""
    rounds, best, is_undisturbed = 0, float("inf"), False
    end = time.perf_counter() + _PATIENCE_SECONDS
    while rounds < _ROUNDS or not (is_undisturbed or time.perf_counter() > end):
        began, used = time.perf_counter(), time.process_time()
        total = 0
        for number in range(_LOOPS):
            total += number * number
        used = time.process_time() - used
        taken = time.perf_counter() - began
        rounds, best = rounds + 1, min(best, taken)
        is_undisturbed = is_undisturbed or taken < 1.2 * used + 0.001
    return best


def private_directories(marker: str) -> dict[str, object]:
    """Leaves the marker in $TMPDIR and /tmp, and says where those are."""
    told: dict[str, object] = {"TMPDIR": os.environ.get("TMPDIR", "")}
    for place in {os.environ.get("TMPDIR") or "/tmp", "/tmp"}:
        try:
            with open(os.path.join(place, marker), "w", encoding="utf-8") as file:
                file.write("left by a job of deploy validate\n")
        except OSError as problem:
            told["error"] = f"{place}: {problem.strerror}"
    return told


def shared_directory(path: str) -> dict[str, object]:
    """What is read of the login node's file, and whether the own could be written."""
    told: dict[str, object] = {}
    try:
        with open(os.path.join(path, "nonce"), encoding="utf-8") as file:
            told["nonce"] = file.read()
        with open(os.path.join(path, f"from-{os.environ['SLURMD_NODENAME']}"), "w", encoding="utf-8") as file:
            file.write(str(told["nonce"]))
    except OSError as problem:
        told["error"] = f"{path}: {problem.strerror}"
    return told


def main() -> None:
    """Look around, then stay for as long as was asked for."""
    given = json.loads(sys.argv[1])
    began = time.time()
    answer = {
        "node": os.environ.get("SLURMD_NODENAME", ""),
        "host": socket.gethostname(),
        "job": os.environ.get("SLURM_JOB_ID", ""),
        "ranks": int(os.environ.get("SLURM_NTASKS", "0")),
        "rank": int(os.environ.get("SLURM_PROCID", "-1")),
        "user": os.getuid(),
        "cpus": len(os.sched_getaffinity(0)),
        "devices": {path: opened(path) for path in sorted(glob.glob("/dev/nvidia[0-9]*"))},
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES", ""),
    }
    if given.get("marker"):
        answer["private"] = private_directories(given["marker"])
    if given.get("shared"):
        answer["shared"] = shared_directory(given["shared"])
    if given.get("works"):
        answer["work_seconds"] = seconds_of_work()
    time.sleep(given.get("hold", 0))
    answer["from"], answer["to"] = began, time.time()
    # The program may come over standard input with what srun adds around it; the mark finds the line again.
    sys.stdout.write(f"{MARK}{json.dumps(answer)}\n")


main()
