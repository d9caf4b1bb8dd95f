"""What measurements are compared with: numbers of ours, or of the site's own ``validation.yml``."""

from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from math import inf
from pathlib import Path
from typing import Any

from deploy.errors import DeployError, Finding
from deploy.site import own_files
from deploy.site.origin import shown
from deploy.site.plain_yaml import NotReadable, parse_mapping, read_text
from deploy.validate.benchmarks import KEYS, Benchmarks, read_benchmarks

FILE_NAME = own_files.THRESHOLDS
_LISTS = frozenset({"alerts_that_may_fire"})


@dataclass(frozen=True)
class Thresholds:
    """Where a measurement becomes a finding."""

    slow_node_ratio: float = 1.5
    """So many times the work time of a typical node of its type makes a node slow."""
    free_percent: float = 5.0
    """So much of the bytes and files of a file system must be free for users."""
    regression_percent: float = 50.0
    """So much slower than in the last good validation is a regression."""
    alerts_that_may_fire: tuple[str, ...] = ()
    """Alerts that are no finding, by name."""
    outlier_deviations: float = 6.0
    """So many standard deviations, as the median distance tells them, make a node of its type an outlier."""
    outlier_percent: float = 10.0
    """What is nearer to the median than this is no outlier, however equal the others are."""
    bus_bandwidth_percent: float = 90.0
    """So much of the bus bandwidth that NCCL reaches on such GPUs and such a fabric must be there."""
    lost_percent: float = 5.0
    """So many of the packets between two hosts may be lost."""
    latency_ms: float = 20.0
    """The fastest of many packets takes no longer to a host of the cluster and back."""
    benchmarks: Benchmarks = field(default_factory=Benchmarks)
    """The programs that measure, and what NCCL should reach."""


def read_thresholds(directory: Path) -> Thresholds:
    """The site's, over ours. Raises DeployError ``invalid-thresholds``."""
    path = directory / FILE_NAME
    if not path.exists():
        return Thresholds()
    try:
        content = parse_mapping(read_text(path))
    except NotReadable as problem:
        raise DeployError(
            _finding(problem.place(path), f"this file cannot be read: {problem.reason}")
        ) from None
    known = [one.name for one in fields(Thresholds) if one.name != "benchmarks"]
    wrong = []
    benchmarks, problems = read_benchmarks(content)
    wrong += [_finding(str(path), problem) for problem in problems]
    numbers = {name: value for name, value in content.items() if name not in KEYS}
    for name, value in numbers.items():
        if name not in known:
            near = get_close_matches(str(name), known, 1)
            meant = f", did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"
            wrong.append(_finding(str(path), f"{name} is not a threshold{meant}"))
        elif name in _LISTS:
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                wrong.append(_finding(str(path), f"{name}: {value!r} is not a list of names"))
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < inf:
            wrong.append(_finding(str(path), f"{name}: {value!r} is not a number above zero"))
    if wrong:
        raise DeployError(*wrong)
    given: dict[str, Any] = {
        str(name): tuple(value) if name in _LISTS else float(value) for name, value in numbers.items()
    }
    return Thresholds(**given, benchmarks=benchmarks)


def _finding(place: str, message: str) -> Finding:
    return Finding(
        shown(place), "invalid-thresholds", message, f"fix it, or remove {FILE_NAME} for the defaults"
    )
