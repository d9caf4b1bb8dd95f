"""Functions in a pilot job."""

import parsl
from parsl.addresses import address_by_hostname
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SrunLauncher
from parsl.providers import SlurmProvider


@parsl.python_app
def square(number: int) -> tuple[int, str]:
    """A square, and where it was made."""
    import platform  # noqa: PLC0415 - the function runs elsewhere

    return number * number, platform.node()


def main() -> None:
    """Start the pilot, compute, end it."""
    pilot = SlurmProvider(
        partition="batch",
        scheduler_options="#SBATCH --mem=600M",
        walltime="00:10:00",
        init_blocks=1,
        max_blocks=1,
        launcher=SrunLauncher(),
        worker_init="source $HOME/clients/bin/activate",
        exclusive=False,
    )
    executor = HighThroughputExecutor(
        provider=pilot, max_workers_per_node=2, address=address_by_hostname(), encrypted=True
    )
    with parsl.load(Config(executors=[executor], run_dir="parsl")):
        found = [task.result(timeout=240) for task in [square(number) for number in range(4)]]
    hosts = sorted({host for _, host in found})
    print("squares", [number for number, _ in found], "on", hosts)  # noqa: T201


if __name__ == "__main__":
    main()
