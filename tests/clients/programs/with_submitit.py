"""An array of three functions, and one that fails."""

import platform

import submitit


def add(first: int, second: int) -> tuple[int, str]:
    """A sum, and where it was made."""
    return first + second, platform.node()


def main() -> None:
    """Submit, wait, print."""
    executor = submitit.AutoExecutor(folder="submitit/%j")
    executor.update_parameters(timeout_min=5, slurm_mem="200M", name="submitit-sum")
    jobs = executor.map_array(add, [1, 2, 3], [4, 5, 6])
    results = [job.result() for job in jobs]
    hosts = {host for _, host in results}
    print("sums", [number for number, _ in results], "on", *sorted(hosts))  # noqa: T201
    executor.update_parameters(name="submitit-error")
    try:
        executor.submit(divmod, 1, 0).result()
    except submitit.core.utils.FailedJobError as problem:
        name = "ZeroDivisionError" if "ZeroDivisionError" in str(problem) else str(problem)
        print("failed with", name)  # noqa: T201


if __name__ == "__main__":
    main()
