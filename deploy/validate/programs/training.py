"""A few steps of training with PyTorch's DistributedDataParallel; every task of the job says what came of it.

NCCL on GPUs, Gloo on CPUs. All tasks begin with other weights, which the first one's replace, and see other
data; afterwards they must have the same weights, and the loss must have become less. Its argument is a JSON
object with the ``port`` at which the tasks meet, on the first node of the job.
"""

import json
import os
import re
import sys
from datetime import timedelta

try:
    import torch  # type: ignore[import-not-found]
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel  # type: ignore[import-not-found]
except ImportError:
    # An environment without it is no fault of the cluster.
    sys.stdout.write("deploy-missing: torch\n")
    sys.exit(127)

_STEPS = 30
_SECONDS = 120


def first_host(nodes: str) -> str:
    """The first name of Slurm's list of hosts, as in ``node[03-05,9]``."""
    name = re.match(r"([^,\[]+)(?:\[(\w+)[^\]]*\]([^,]*))?", nodes)
    return "".join(part or "" for part in name.groups()) if name else "localhost"


def trained(rank: int, ranks: int, local: int, address: str) -> "dict[str, object]":
    """Meets the others, trains, and compares."""
    is_on_gpu = torch.cuda.is_available()
    backend = "nccl" if is_on_gpu else "gloo"
    # Debian's build cannot do otherwise, and all can do this.
    os.environ.setdefault("USE_LIBUV", "0")
    # With its GPU alone in sight a task has it as the first.
    device = torch.device("cuda", local % torch.cuda.device_count()) if is_on_gpu else torch.device("cpu")
    if is_on_gpu:
        torch.cuda.set_device(device)
    distributed.init_process_group(
        backend, init_method=address, rank=rank, world_size=ranks, timeout=timedelta(seconds=_SECONDS)
    )
    torch.manual_seed(rank)
    network = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    model = DistributedDataParallel(network.to(device), device_ids=[device.index] if is_on_gpu else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = torch.randn((256, 16), device=device)
    wanted = data.sum(dim=1, keepdim=True)
    losses = []
    for _ in range(_STEPS):
        optimizer.zero_grad()
        loss = ((model(data) - wanted) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    one = torch.ones(1, device=device)
    distributed.all_reduce(one)
    weights = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
    largest, smallest = weights.clone(), weights.clone()
    distributed.all_reduce(largest, op=distributed.ReduceOp.MAX)
    distributed.all_reduce(smallest, op=distributed.ReduceOp.MIN)
    distributed.barrier()
    answer = {
        "rank": rank,
        "ranks": int(one.item()),
        "node": os.environ.get("SLURMD_NODENAME", ""),
        "backend": backend,
        "torch": torch.__version__,
        "gpu": torch.cuda.get_device_name(device) if is_on_gpu else "",
        "is_same": bool(torch.equal(largest, smallest)),
        "losses": [losses[0], losses[-1]],
    }
    distributed.destroy_process_group()
    return answer


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    place = first_host(os.environ.get("SLURM_STEP_NODELIST") or os.environ.get("SLURM_JOB_NODELIST", ""))
    own = {name: int(os.environ.get(f"SLURM_{name}", "0")) for name in ("PROCID", "NTASKS", "LOCALID")}
    answer = trained(own["PROCID"], own["NTASKS"] or 1, own["LOCALID"], f"tcp://{place}:{given['port']}")
    sys.stdout.write(f"deploy-probe:{json.dumps(answer)}\n")
