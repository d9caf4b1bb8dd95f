"""The same for several machines at once."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Result = TypeVar("_Result")
_AT_ONCE = 8


def for_each(hosts: Iterable[str], action: Callable[[str], _Result]) -> dict[str, _Result]:
    """Do ``action`` for all hosts side by side; all are tried, then the first error is raised."""
    names = list(hosts)
    with ThreadPoolExecutor(max_workers=min(_AT_ONCE, max(1, len(names)))) as pool:
        futures = {name: pool.submit(action, name) for name in names}
    return {name: future.result() for name, future in futures.items()}
