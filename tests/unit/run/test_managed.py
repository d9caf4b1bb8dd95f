from pathlib import Path
from typing import Any

import ansible.modules
import pytest

from deploy.run.managed import RECORDED, later, managed


def given(**arguments: object) -> dict[str, Any]:
    return {"invocation": {"module_args": arguments}}


def named(**names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Names of which nothing more is known."""
    return {kind: {name: {} for name in each} for kind, each in names.items()}


@pytest.mark.parametrize(
    ("action", "result", "expected"),
    [
        ("ansible.builtin.copy", {"dest": "/etc/x"}, named(files=("/etc/x",))),
        ("ansible.builtin.copy", {"dest": "/etc/d/x", **given(dest="/etc/d/")}, named(files=("/etc/d/x",))),
        ("ansible.builtin.lineinfile", given(path="/etc/y"), named(files=("/etc/y",))),
        ("ansible.builtin.known_hosts", given(path="/etc/z", name="x"), named(files=("/etc/z",))),
        (
            "ansible.builtin.deb822_repository",
            {"dest": "/etc/r", **given(name="r")},
            named(files=("/etc/r",)),
        ),
        ("ansible.builtin.apt", given(name=["a=1.2", "b"]), named(packages=("a", "b"))),
        ("ansible.builtin.package", given(name="a, b"), named(packages=("a", "b"))),
        ("ansible.builtin.systemd_service", given(name="x"), named(services=("x",))),
        ("ansible.builtin.user", given(name="x"), named(users=("x",))),
        ("own", {"deploy_manages": {"services": ["a", "b"]}}, named(services=("a", "b"))),
        ("ansible.builtin.command", given(argv=["x"]), {}),
        # Items of a loop that were skipped: in ansible-core 2.19, and since 2.21.
        ("ansible.builtin.user", {"results": [{"skipped": True, **given(name="x")}]}, {}),
        ("ansible.builtin.user", {"results": [{"skip_reason": "false", **given(name="x")}]}, {}),
        ("ansible.builtin.copy", {"censored": "hidden"}, {}),
        ("ansible.builtin.apt", given(name=7), {}),
    ],
)
def test_a_result_says_what_is_managed(
    action: str, result: dict[str, Any], expected: dict[str, dict[str, Any]]
) -> None:
    assert managed(action, result) == expected


def test_only_modules_that_ansible_has_are_understood() -> None:
    there = {path.stem for path in Path(ansible.modules.__file__).parent.glob("*.py")}
    assert there >= RECORDED


def test_a_loop_manages_what_its_items_do() -> None:
    items = [{"dest": "/a"}, {"dest": "/b"}, {"dest": "/c", "skipped": True}, "odd"]
    assert managed("ansible.builtin.template", {"results": items}) == named(files=("/a", "/b"))


MODE = {"mode": "02755", "owner": "root", "group": "adm"}
LEFT = {"mode": "2755", "owner": "root", "group": "adm"}


@pytest.mark.parametrize(
    ("action", "result", "expected"),
    [
        ("copy", {**MODE, "state": "file", "checksum": "a1"}, {**LEFT, "type": "file", "content": "sha1:a1"}),
        ("file", {**MODE, "state": "file", "checksum": "a1"}, {**LEFT, "type": "file"}),
        ("file", {**MODE, "state": "directory"}, {**LEFT, "type": "directory"}),
        ("file", {"state": "link", "src": "/y"}, {"type": "link", "target": "/y"}),
        ("file", {"state": "absent"}, None),
        ("lineinfile", {"changed": True}, {"content": None}),
        ("lineinfile", {"changed": False}, {}),
        ("own", {"deploy_manages": {"files": {"/x": {"type": "other"}}}}, {"type": "other"}),
    ],
)
def test_a_result_says_what_it_left(action: str, result: dict[str, Any], expected: object) -> None:
    assert managed(f"ansible.builtin.{action}", {"path": "/x", **result}) == {"files": {"/x": expected}}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"mode": "1", "content": "a"}, {}, {"mode": "1", "content": "a"}),
        ({"type": "file", "content": "a"}, {"content": None}, {"type": "file", "content": None}),
        ({"type": "file", "content": "a"}, {"type": "directory"}, {"type": "directory"}),
        ({"type": "file"}, None, None),
        (None, {"type": "file"}, {"type": "file"}),
        (None, {}, None),
    ],
)
def test_the_last_report_holds(before: Any, after: Any, expected: object) -> None:  # noqa: ANN401
    assert later(before, after) == expected
