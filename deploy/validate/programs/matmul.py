"""The load of one GPU in a burn-in: products of matrices with PyTorch, each compared with the first.

Its argument is a JSON object: ``gpu`` (the index among the job's) and ``seconds``. The same product on the
same GPU has the same bits every time; of the first, a part is compared with what the CPU computes.
"""

import json
import sys
import time

try:
    import torch  # type: ignore[import-not-found]

    _CUDA = torch.version.cuda
except ImportError:
    _CUDA = None
if _CUDA is None:
    # An environment without it is no fault of the cluster.
    sys.stdout.write("deploy-missing: torch with CUDA\n")
    sys.exit(127)

_SIZE, _ROWS = 8192, 16
_CLOSE = 0.02


def burn(index: int, seconds: float) -> "dict[str, object]":
    """Multiplies until the time is over."""
    device = torch.device("cuda", index)
    generator = torch.Generator().manual_seed(index)
    left = torch.randn((_SIZE, _SIZE), generator=generator).to(torch.bfloat16)
    right = torch.randn((_SIZE, _SIZE), generator=generator).to(torch.bfloat16)
    a, b = left.to(device), right.to(device)
    first = a @ b
    here = left[:_ROWS].float() @ right.float()
    distance = float((first[:_ROWS].cpu().float() - here).abs().max() / here.abs().max())
    wrong = (
        [f"the product is off by {distance:.3g} of what the CPU computes"] if not distance < _CLOSE else []
    )
    products, began = 0, time.time()
    while time.time() - began < seconds:
        for _ in range(20):
            product = a @ b
        products += 20
        torch.cuda.synchronize(device)
        if not torch.equal(product, first):
            wrong.append(
                f"product {products} differs in {int((product != first).sum())} places from the first"
            )
    took = time.time() - began
    return {
        "gpu": index,
        "name": torch.cuda.get_device_name(device),
        "missing": False,
        "rate": 2 * _SIZE**3 * products / took / 1e12,
        "rounds": products,
        "wrong": wrong[:3],
    }


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    # Print in one piece: srun and others share the line.
    sys.stdout.write(f"deploy-probe:{json.dumps(burn(given['gpu'], given['seconds']))}\n")
