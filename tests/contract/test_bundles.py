"""What roles fetch is in a bundle, or a bundle says that it is not."""

import re
from collections.abc import Iterator

from deploy.bundle import contents
from tests.contract.content import Task, options, role_directories, tasks

_BY_ITSELF = {"nvidia_driver", "cuda_toolkit", "apptainer"}
"""Of these ``contents`` knows what they install by what the site says."""
_OF_NVIDIA = {"container_toolkit", "dcgm", "gpu_exporter"}
"""Their phases have nvidia_repository, of which a bundle says that it does not hold it."""


def _fetches(task: Task, own: set[str]) -> bool:
    """Whether a task brings what no option of its role names as packages."""
    if {"python_environment", "apt_source"} & {*task.words}:
        return True
    wanted = task.words.get("packages")
    if not isinstance(wanted, dict) or wanted.get("state") == "absent":
        return False
    words = {*re.findall(r"\w+", str(wanted["name"]))}
    return not words & {*own, *contents.ONE_PACKAGE}


def _unheld() -> Iterator[str]:
    known = {*contents.ELSEWHERE, *contents.WORKED_OUT, *_BY_ITSELF, *_OF_NVIDIA}
    for role in role_directories():
        own = {name for name in options(role) if name.endswith("_packages")}
        if role.name not in known:
            yield from (task.place for task in tasks(role) if _fetches(task, own))


def test_every_package_is_in_a_bundle_or_is_said_not_to_be() -> None:
    assert list(_unheld()) == []
