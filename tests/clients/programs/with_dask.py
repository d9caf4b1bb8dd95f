"""Two workers, each a job, and a sum over both."""

import platform

from dask.distributed import Client
from dask_jobqueue import SLURMCluster


def square(number: int) -> int:
    """What is summed."""
    return number * number


def main() -> None:
    """Start workers, compute, end them."""
    options = {"cores": 1, "memory": "400MB", "walltime": "00:10:00", "log_directory": "dask"}
    with SLURMCluster(**options) as cluster, Client(cluster) as client:
        cluster.scale(jobs=2)
        client.wait_for_workers(2, timeout=180)
        total = client.submit(sum, client.map(square, range(1000))).result(timeout=120)
        hosts = sorted(set(client.run(platform.node).values()))
        print("sum", total, "by", len(client.run(platform.node)), "workers on", hosts)  # noqa: T201


if __name__ == "__main__":
    main()
