from typing import Any

import pytest

from deploy.run.managed import managed


def given(**arguments: object) -> dict[str, Any]:
    return {"invocation": {"module_args": arguments}}


@pytest.mark.parametrize(
    ("action", "result", "expected"),
    [
        ("ansible.builtin.copy", {"dest": "/etc/x"}, {"files": ("/etc/x",)}),
        ("ansible.builtin.copy", {"dest": "/etc/d/x", **given(dest="/etc/d/")}, {"files": ("/etc/d/x",)}),
        ("ansible.builtin.lineinfile", given(path="/etc/y"), {"files": ("/etc/y",)}),
        ("ansible.builtin.apt", given(name=["a=1.2", "b"]), {"packages": ("a", "b")}),
        ("ansible.builtin.package", given(name="a, b"), {"packages": ("a", "b")}),
        ("ansible.builtin.systemd_service", given(name="x"), {"services": ("x",)}),
        ("ansible.builtin.user", given(name="x"), {"users": ("x",)}),
        ("community.general.modprobe", given(name="x"), {"modules": ("x",)}),
        ("ansible.posix.mount", given(path="/x"), {"mounts": ("/x",), "files": ("/etc/fstab",)}),
        ("ansible.posix.sysctl", given(name="a.b"), {"sysctls": ("a.b",), "files": ("/etc/sysctl.conf",)}),
        ("own", {"deploy_manages": {"services": ["a", "b"]}}, {"services": ("a", "b")}),
        ("ansible.builtin.command", given(argv=["x"]), {}),
        ("ansible.builtin.copy", {"censored": "hidden"}, {}),
        ("ansible.builtin.apt", given(name=7), {}),
    ],
)
def test_a_result_says_what_is_managed(
    action: str, result: dict[str, Any], expected: dict[str, tuple[str, ...]]
) -> None:
    assert managed(action, result) == expected


def test_a_loop_manages_what_its_items_do() -> None:
    items = [{"dest": "/a"}, {"dest": "/b"}, {"dest": "/c", "skipped": True}, "odd"]
    assert managed("ansible.builtin.template", {"results": items}) == {"files": ("/a", "/b")}
