"""How much of a host's memory InnoDB takes for tables and indexes."""

from __future__ import annotations

from collections.abc import Callable

_EXAMPLE_MB = 4096
_STEP_MB = 64


def buffer_pool_mb(memory_mb: int) -> int:
    """MiB for ``innodb_buffer_pool_size`` on a host with so much memory in MiB, in whole steps of 64.

    Slurm's guide (accounting.html, "SlurmDBD Configuration") wants 5 to 50 percent of the host's memory, and
    shows 4096M. So: what it shows, no less than its 5 percent, and at most a quarter, because slurmctld,
    slurmdbd and the monitoring are usually on that host, too.
    """
    wanted = min(memory_mb // 4, max(_EXAMPLE_MB, memory_mb // 20))
    return max(_STEP_MB, wanted // _STEP_MB * _STEP_MB)


class FilterModule:
    """What templates may use."""

    def filters(self) -> dict[str, Callable[[int], int]]:
        """The filters by name."""
        return {"buffer_pool_mb": buffer_pool_mb}
