"""Which modules mitogen runs in its own process on a host."""

import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_mitogen.planner import NewStylePlanner

from deploy.content import roles
from deploy.run.not_forked import changes_process, run_in_place

OWN = roles().parent


@pytest.fixture(autouse=True)
def _mitogens_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NewStylePlanner, "should_fork", NewStylePlanner.should_fork)


def planned(module: Path, *custom: Path, **invocation: object) -> Any:  # noqa: ANN401 - mitogen has no types
    """Whether a module with these module_utils is given a process of its own."""
    asked: dict[str, Any] = {
        "module_name": module.stem,
        "module_path": str(module),
        "task_vars": {},
        "wrap_async": None,
    }
    planner = NewStylePlanner(SimpleNamespace(**{**asked, **invocation}))
    planner._module_map = {"builtin": [], "custom": [(path.stem, str(path), False) for path in custom]}
    return planner.should_fork()


def test_only_ours_run_so_and_only_those_that_leave_their_process_as_it_is(tmp_path: Path) -> None:
    module, other = OWN / "playbooks/library/root_files.py", tmp_path / "root_file.py"
    durable, forking = (OWN / "playbooks/module_utils" / name for name in ("durable.py", "user_files.py"))
    other.touch()
    assert planned(module, durable), "mitogen itself"
    run_in_place(OWN)
    assert not planned(module, durable)
    assert planned(module, durable, forking)
    assert planned(module, durable, other), "a collection's, perhaps of the same name"
    assert planned(module, durable, wrap_async=True)
    assert not planned(module)
    assert planned(module, task_vars={"mitogen_task_isolation": "fork"}), "as mitogen says"


def test_where_mitogen_decides_otherwise_it_goes_on_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NewStylePlanner, "should_fork", lambda _: True)
    with pytest.raises(AttributeError):
        run_in_place(OWN)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("import os\n    os.umask(0o077)\n", True),
        ("    child = os.fork()\n", True),
        ("    os.seteuid(0)\n", True),
        ("import threading\n", True),
        ("from signal import SIGTERM\n", True),
        ("run_command(command, umask=0o022)\n", False),
        ("    found = os.environ.get('PATH')\n", False),
        ("# signal handlers and threading\n", False),
    ],
)
def test_what_changes_a_process(tmp_path: Path, text: str, *, changes: bool) -> None:
    (tmp_path / "module.py").write_text(text)
    assert changes_process(tmp_path / "module.py") is changes


def test_no_two_module_utils_have_one_name() -> None:
    """Else a module would import what another role means by it."""
    found = Counter(
        path.relative_to(place).as_posix()
        for place in (OWN / "playbooks/module_utils", *roles().glob("*/module_utils"))
        for path in place.rglob("*.py")
        if path.name != "__init__.py"
    )
    assert [name for name, times in found.items() if times > 1] == []


def test_none_keeps_what_a_later_module_would_find() -> None:
    """In one process a function's cache would outlive the module; an object of the module does not."""
    places = (OWN / "playbooks/library", OWN / "playbooks/module_utils", *roles().glob("*/library"))
    caching = [
        path.name
        for place in (*places, *roles().glob("*/module_utils"))
        for path in place.rglob("*.py")
        if any(
            re.match(r"\s*@(functools\.)?(cache|lru_cache)\b", line) for line in path.read_text().splitlines()
        )
    ]
    assert caching == []
