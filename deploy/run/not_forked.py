"""Modules of deploy's run in mitogen's process on the host, as Ansible's own do, not in one forked for each.

Mitogen forks for every module with module_utils that are not Ansible's, since two of one name may be about;
all of deploy's have names of their own (a test). What a module imported of them is forgotten with its end,
and the environment is as it was. A module that changes its process in other ways, or starts threads, is given
one of its own as before.
"""

import re
from pathlib import Path
from typing import Any

from ansible_mitogen.planner import NewStylePlanner

_CHANGES = re.compile(
    rb"\bos\.(chdir|fork|set\w+|umask)\(|^(from|import) (atexit|locale|signal|threading)\b", re.MULTILINE
)


def changes_process(path: Path) -> bool:
    """Whether the file of a module, or of what it imports, changes the process that it runs in."""
    return _CHANGES.search(path.read_bytes()) is not None


def run_in_place(own: Path) -> None:
    """Has mitogen run modules so whose files are below a directory.

    AttributeError where mitogen decides by something else than is known here.
    """
    mitogens = NewStylePlanner.should_fork
    if not {"_inv", "get_module_map"} <= {*mitogens.__code__.co_names}:
        message = "should_fork goes by something else"
        raise AttributeError(message)

    def should_fork(planner: Any) -> bool:  # noqa: ANN401 - mitogen has no types
        custom = [Path(path) for _, path, _ in planner.get_module_map()["custom"]]
        if not custom or planner._inv.wrap_async:  # noqa: SLF001
            return bool(mitogens(planner))
        files = [Path(planner._inv.module_path), *custom]  # noqa: SLF001
        return any(not path.is_relative_to(own) or changes_process(path) for path in files)

    NewStylePlanner.should_fork = should_fork
